#include "base/system/reserved_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/huge_pages.h"
#include "base/posix/map_memory.h"

namespace ptkit::base {

ReservedMemory::ReservedMemory(std::size_t size) : size_(size) {
  void* const memory =
      map_memory(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = static_cast<std::uint8_t*>(memory);
  if (size >= kHugePage) static_cast<void>(::madvise(memory, size, MADV_HUGEPAGE));
}

ReservedMemory::~ReservedMemory() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

void ReservedMemory::release(std::size_t begin, std::size_t end) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  if (end < size_) end = end / page * page;
  if (begin >= end) return;
  // khugepaged would fill up huge pages that are only partly released.
  static_cast<void>(::madvise(memory_, size_, MADV_NOHUGEPAGE));
  static_cast<void>(::madvise(memory_ + begin, end - begin, MADV_DONTNEED));
}

std::string ReservedMemory::error() { return std::strerror(errno); }

}  // namespace ptkit::base
