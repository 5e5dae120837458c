#include "base/system/reserved_memory.h"

#include <windows.h>

#include <system_error>

namespace ptkit::base {

ReservedMemory::ReservedMemory(std::size_t size)
    : memory_(static_cast<std::uint8_t*>(
          ::VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE))),
      size_(size) {}

ReservedMemory::~ReservedMemory() {
  if (memory_ != nullptr) ::VirtualFree(memory_, 0, MEM_RELEASE);
}

// The pages stay committed: other threads may read them.
void ReservedMemory::release(std::size_t begin, std::size_t end) noexcept {
  SYSTEM_INFO info{};
  ::GetSystemInfo(&info);
  const std::size_t page = info.dwPageSize;
  begin = begin / page * page;
  if (end < size_) end = end / page * page;
  if (begin < end) ::VirtualAlloc(memory_ + begin, end - begin, MEM_RESET, PAGE_READWRITE);
}

std::string ReservedMemory::error() {
  return std::system_category().message(static_cast<int>(::GetLastError()));
}

}  // namespace ptkit::base
