#include "base/posix/map_memory.h"

#include <sys/mman.h>

#include <algorithm>

#if defined(__SANITIZE_ADDRESS__)
#define PT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PT_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef PT_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace ptkit::base {

void* map_memory(std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  void* const memory = ::mmap(nullptr, bytes, protection, flags, file, offset);
#ifdef PT_ADDRESS_SANITIZER
  // The shadow has a byte per 8 bytes, and mappings of terabytes are legal.
  constexpr std::size_t kMostCleared = std::size_t{256} << 20U;
  if (memory != MAP_FAILED) ASAN_UNPOISON_MEMORY_REGION(memory, std::min(bytes, kMostCleared));
#endif
  return memory;
}

}  // namespace ptkit::base
