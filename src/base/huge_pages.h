// Memory for large tables with random access: on huge pages if the system has free ones.
#pragma once

#include <cstddef>
#include <new>

namespace ptkit::base {

constexpr std::size_t kHugePage = std::size_t{1} << 21U;

// Requests huge pages, if many are free, in memory that is aligned to one. Small pages are good enough if it
// gives none.
void prefer_huge_pages(void* memory, std::size_t bytes) noexcept;

[[nodiscard]] constexpr std::align_val_t page_alignment(std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  return std::align_val_t{bytes >= kHugePage ? kHugePage : kLine};
}

// Allocates memory that is aligned to a cache line. From kHugePage bytes on it is aligned to a huge page, and
// uses huge pages if many are free: compaction for one takes longer than decoding a small trace. Throws
// std::bad_alloc.
[[nodiscard]] inline void* allocate_pages(std::size_t bytes) {
  void* const memory = ::operator new(bytes, page_alignment(bytes));
  if (bytes >= kHugePage) prefer_huge_pages(memory, bytes);
  return memory;
}
inline void free_pages(void* memory, std::size_t bytes) noexcept {
  ::operator delete(memory, page_alignment(bytes));
}

// An allocator for std::vector.
template <typename T>
struct HugePages {
  using value_type = T;

  HugePages() = default;
  template <typename U>
  explicit(false) HugePages(const HugePages<U>& /*other*/) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(allocate_pages(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept { free_pages(memory, count * sizeof(T)); }
  [[nodiscard]] bool operator==(const HugePages& /*other*/) const noexcept { return true; }
};

}  // namespace ptkit::base
