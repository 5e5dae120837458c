// Memory for large tables that are looked up all over: on huge pages, where the system has them to give.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ptkit::base {

// An allocator for std::vector.
template <typename T>
struct HugePages {
  using value_type = T;
  static constexpr std::size_t kPage = std::size_t{1} << 21U;
  static constexpr std::size_t kLine = 64;

  HugePages() = default;
  template <typename U>
  explicit(false) HugePages(const HugePages<U>& /*other*/) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* const memory = ::operator new(bytes, alignment(bytes));
#if defined(__linux__)
    if (bytes >= kPage) static_cast<void>(madvise(memory, bytes & ~(kPage - 1), MADV_HUGEPAGE));
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    ::operator delete(memory, alignment(count * sizeof(T)));
  }
  [[nodiscard]] bool operator==(const HugePages& /*other*/) const noexcept { return true; }

 private:
  [[nodiscard]] static std::align_val_t alignment(std::size_t bytes) noexcept {
    return std::align_val_t{bytes >= kPage ? kPage : kLine};
  }
};

}  // namespace ptkit::base
