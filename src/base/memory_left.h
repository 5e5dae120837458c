// How much memory this process may still allocate, and the limit that bounds it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptkit::base {

enum class MemoryLimit : std::uint8_t {
  NONE,
  CGROUP,
  RLIMIT_AS,
  RLIMIT_DATA,
  MEM_AVAILABLE,
  PHYSICAL_MEMORY,  // Windows: free pages
  COMMIT_LIMIT,     // Windows: pages that the system still promises, in memory or in the page file
};
// The name for messages: "cgroup", "RLIMIT_AS", "RLIMIT_DATA", "MemAvailable"...
[[nodiscard]] constexpr std::string_view memory_limit_name(MemoryLimit limit) noexcept {
  switch (limit) {
    case MemoryLimit::CGROUP:
      return "cgroup";
    case MemoryLimit::RLIMIT_AS:
      return "RLIMIT_AS";
    case MemoryLimit::RLIMIT_DATA:
      return "RLIMIT_DATA";
    case MemoryLimit::MEM_AVAILABLE:
      return "MemAvailable";
    case MemoryLimit::PHYSICAL_MEMORY:
      return "physical memory";
    case MemoryLimit::COMMIT_LIMIT:
      return "commit limit";
    case MemoryLimit::NONE:
      break;
  }
  return "no limit";
}

struct MemoryBound {
  std::uint64_t bytes = UINT64_MAX;
  MemoryLimit limit = MemoryLimit::NONE;

  // The bytes without a reserve for the rest of the process and of the machine.
  [[nodiscard]] std::uint64_t usable() const noexcept {
    constexpr std::uint64_t kMostKept = std::uint64_t{512} << 20U;
    return bytes == UINT64_MAX ? bytes : bytes - (bytes / 8 < kMostKept ? bytes / 8 : kMostKept);
  }
  void lower_to(std::uint64_t other_bytes, MemoryLimit other_limit) noexcept {
    if (other_bytes < bytes) *this = {other_bytes, other_limit};
  }
};

// Reserved address space counts against RLIMIT_AS and RLIMIT_DATA. Pages count against cgroups and the
// machine's memory when they are first written.
struct MemoryLeft {
  MemoryBound address_space;
  MemoryBound pages;

  [[nodiscard]] MemoryBound least() const noexcept {
    return address_space.bytes < pages.bytes ? address_space : pages;
  }
};

// Linux: reads /proc/self/{limits,status,cgroup,mountinfo}, /proc/meminfo and the memory controllers (cgroup
// versions 1 and 2) of this process below `root`, from its cgroup up to the mount point. Page cache that the
// kernel can drop counts as free. A file that cannot be read sets no limit. Takes some tens of microseconds.
// Windows: queries the system, whatever `root` is. May throw std::bad_alloc.
[[nodiscard]] MemoryLeft memory_left(const std::string& root = {});

// The memory that this process may have in all: the least of the cgroups' limits and the machine's memory.
// UINT64_MAX: it is not known. May throw std::bad_alloc.
[[nodiscard]] std::uint64_t memory_limit(const std::string& root = {});

}  // namespace ptkit::base
