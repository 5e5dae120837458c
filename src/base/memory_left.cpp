#include "base/memory_left.h"

namespace ptkit::base {

std::string_view memory_limit_name(MemoryLimit limit) noexcept {
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

}  // namespace ptkit::base
