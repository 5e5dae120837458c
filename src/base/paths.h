// Names of files, as both Windows and Linux write them.
#pragma once

#include <string_view>

namespace ptkit::base {

// "C:\\Windows\\System32\\calc.exe" and "/srv/dumps/0001" by their last part.
[[nodiscard]] constexpr std::string_view last_part(std::string_view path) noexcept {
  return path.substr(path.find_last_of("\\/") + 1);  // npos + 1 is 0
}

}  // namespace ptkit::base
