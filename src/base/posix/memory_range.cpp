#include "base/system/memory_range.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "base/posix/map_memory.h"

namespace ptkit::base {
namespace {

// Whether the system gives huge pages to ranges that request them. Advice is a system call for each range,
// and on a system with "never" it only splits mappings.
[[nodiscard]] bool has_huge_pages() noexcept {
  static const bool has = [] {
    const int file = ::open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    std::array<char, 128> text{};
    const ssize_t size = ::read(file, text.data(), text.size());
    static_cast<void>(::close(file));
    const std::string_view found(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
    return !found.empty() && found.find("[never]") == std::string_view::npos;
  }();
  return has;
}

[[nodiscard]] std::uint8_t* map(std::size_t size) noexcept {
  // Pages that are never written cost nothing: free memory is checked before (see RowBudget).
  void* const memory =
      map_memory(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(memory);
}

}  // namespace

std::uint8_t* map_range(std::size_t size) noexcept {
  if (size < kLargeRange) return map(size);
  if (size > SIZE_MAX / 2) return nullptr;
  // Aligned to huge pages: maps more, and unmaps the excess on both sides.
  std::uint8_t* const memory = map(size + kHugePage);
  if (memory == nullptr) return nullptr;
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(memory) % kHugePage) % kHugePage;
  unmap_range(memory, before);
  unmap_range(memory + before + size, kHugePage - before);
  // Small pages are good enough if this fails.
  if (has_huge_pages()) static_cast<void>(::madvise(memory + before, size, MADV_HUGEPAGE));
  return memory + before;
}

void unmap_range(std::uint8_t* range, std::size_t size) noexcept {
  if (size != 0) static_cast<void>(::munmap(range, size));
}

bool can_move_pages() noexcept { return true; }

bool move_range(std::uint8_t* from, std::size_t size, std::uint8_t* to, std::size_t& moved) noexcept {
  // One huge page at a time: a range may consist of several mappings, which older kernels do not move at
  // once, and after a refusal the target may be unmapped.
  for (; moved < size; moved += kHugePage) {
    if (::mremap(from + moved, kHugePage, kHugePage, MREMAP_MAYMOVE | MREMAP_FIXED, to + moved) != MAP_FAILED)
      continue;
    static_cast<void>(::mmap(to + moved, kHugePage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
    return false;
  }
  return true;
}

}  // namespace ptkit::base
