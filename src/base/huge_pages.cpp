#include "base/huge_pages.h"

#include <new>

namespace ptkit::base {

namespace {

std::align_val_t alignment(std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  return std::align_val_t{bytes >= kHugePage ? kHugePage : kLine};
}

}  // namespace

void* allocate_pages(std::size_t bytes) {
  void* const memory = ::operator new(bytes, alignment(bytes));
  if (bytes >= kHugePage) prefer_huge_pages(memory, bytes);
  return memory;
}

void free_pages(void* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment(bytes)); }

}  // namespace ptkit::base
