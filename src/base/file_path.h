// Paths of the C++ library, which are text of the system's own kind, and ours, which are bytes: UTF-8 on
// Windows, and any bytes elsewhere.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ptkit::base {

[[nodiscard]] inline std::filesystem::path to_path(std::string_view path) {
  return {std::u8string_view(reinterpret_cast<const char8_t*>(path.data()), path.size())};
}

[[nodiscard]] inline std::string to_bytes(const std::filesystem::path& path) {
  const std::u8string bytes = path.u8string();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace ptkit::base
