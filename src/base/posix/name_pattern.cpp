#include "base/system/name_pattern.h"

#include <fnmatch.h>

namespace ptkit::base {

bool matches_pattern(const std::string& pattern, const std::string& name) noexcept {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace ptkit::base
