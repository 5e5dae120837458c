#include "base/memory_left.h"

#include <windows.h>

#include <algorithm>

namespace ptkit::base {
namespace {

[[nodiscard]] MEMORYSTATUSEX memory_status() noexcept {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  if (::GlobalMemoryStatusEx(&status) == 0) {  // no limit is known
    status.ullTotalPhys = status.ullAvailPhys = UINT64_MAX;
    status.ullTotalPageFile = status.ullAvailPageFile = UINT64_MAX;
  }
  return status;
}

}  // namespace

MemoryLeft memory_left(const std::string& /*root*/) {
  const MEMORYSTATUSEX status = memory_status();
  MemoryLeft left;
  left.pages.lower_to(status.ullAvailPhys, MemoryLimit::PHYSICAL_MEMORY);
  left.address_space.lower_to(status.ullAvailPageFile, MemoryLimit::COMMIT_LIMIT);
  return left;
}

std::uint64_t memory_limit(const std::string& /*root*/) {
  const MEMORYSTATUSEX status = memory_status();
  return std::min(status.ullTotalPhys, status.ullTotalPageFile);
}

}  // namespace ptkit::base
