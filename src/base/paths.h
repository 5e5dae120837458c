// Names of files, as both Windows and Linux write them.
#pragma once

#include <string_view>

namespace ptkit::base {

// "C:\\Windows\\System32\\calc.exe" and "/srv/dumps/0001" by their last part.
[[nodiscard]] constexpr std::string_view last_part(std::string_view path) noexcept {
  return path.substr(path.find_last_of("\\/") + 1);  // npos + 1 is 0
}

// The kernel's word behind the path of a mapped file that went away.
inline constexpr std::string_view kDeletedMark = " (deleted)";

[[nodiscard]] constexpr bool is_deleted(std::string_view path) noexcept {
  return path.size() > kDeletedMark.size() && path.ends_with(kDeletedMark);
}

// The path that the file had.
[[nodiscard]] constexpr std::string_view without_mark(std::string_view path) noexcept {
  return is_deleted(path) ? path.substr(0, path.size() - kDeletedMark.size()) : path;
}

}  // namespace ptkit::base
