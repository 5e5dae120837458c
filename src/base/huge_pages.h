// Memory for large tables that are looked up all over: on huge pages, where the system has them to give.
#pragma once

#include <cstddef>

namespace ptkit::base {

constexpr std::size_t kHugePage = std::size_t{1} << 21U;

// Aligned to a cache line; from kHugePage bytes on, to a huge page, and then on huge pages if there are many:
// making one takes the system longer than decoding a small trace. Throws std::bad_alloc.
[[nodiscard]] void* allocate_pages(std::size_t bytes);
void free_pages(void* memory, std::size_t bytes) noexcept;

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
