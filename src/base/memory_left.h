// How much memory this process may still take, and which limit says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptkit::base {

// The name that a message gives: "cgroup", "RLIMIT_AS", "RLIMIT_DATA", "MemAvailable".
enum class MemoryLimit : std::uint8_t { NONE, CGROUP, RLIMIT_AS, RLIMIT_DATA, MEM_AVAILABLE };
[[nodiscard]] std::string_view memory_limit_name(MemoryLimit limit) noexcept;

struct MemoryBound {
  std::uint64_t bytes = UINT64_MAX;
  MemoryLimit limit = MemoryLimit::NONE;

  // Without what is left alone for everything else in the process and on the machine.
  [[nodiscard]] std::uint64_t usable() const noexcept {
    constexpr std::uint64_t kMostKept = std::uint64_t{512} << 20U;
    return bytes == UINT64_MAX ? bytes : bytes - (bytes / 8 < kMostKept ? bytes / 8 : kMostKept);
  }
  void lower_to(std::uint64_t other_bytes, MemoryLimit other_limit) noexcept {
    if (other_bytes < bytes) *this = {other_bytes, other_limit};
  }
};

// Reserved address space counts against RLIMIT_AS and RLIMIT_DATA, pages count against cgroups and the
// machine's memory when they are first written.
struct MemoryLeft {
  MemoryBound address_space;
  MemoryBound pages;

  [[nodiscard]] MemoryBound least() const noexcept {
    return address_space.bytes < pages.bytes ? address_space : pages;
  }
};

// Reads /proc/self/{limits,status,cgroup,mountinfo}, /proc/meminfo and the memory controllers of this process
// below `root`, versions 1 and 2, from its cgroup up to the mount point; page cache that the kernel can drop
// counts as free. What cannot be read is no limit. Some tens of microseconds. std::bad_alloc may pass.
[[nodiscard]] MemoryLeft memory_left(const std::string& root = {});

}  // namespace ptkit::base
