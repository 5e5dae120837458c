// File paths of Linux and Windows.
#pragma once

#include <string_view>

namespace ptkit::base {

// The last part of a path: "calc.exe" of "C:\\Windows\\System32\\calc.exe", "0001" of "/srv/dumps/0001".
[[nodiscard]] constexpr std::string_view last_part(std::string_view path) noexcept {
  return path.substr(path.find_last_of("\\/") + 1);  // npos + 1 is 0
}

// The kernel's suffix for the path of a deleted mapped file.
inline constexpr std::string_view kDeletedMark = " (deleted)";

[[nodiscard]] constexpr bool is_deleted(std::string_view path) noexcept {
  return path.size() > kDeletedMark.size() && path.ends_with(kDeletedMark);
}

// The path that the file had.
[[nodiscard]] constexpr std::string_view without_mark(std::string_view path) noexcept {
  return is_deleted(path) ? path.substr(0, path.size() - kDeletedMark.size()) : path;
}

}  // namespace ptkit::base
