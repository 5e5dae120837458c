// Files whose names hold a number: ptout.3, cpu03_bin.bin.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ptkit::formats {

// The number between `before` and `after` that a path's last part consists of.
[[nodiscard]] std::optional<std::int64_t> number_in_name(const std::string& path, std::string_view before,
                                                         std::string_view after = "");

// The files of a folder whose names are of this form, by number.
[[nodiscard]] std::map<std::int64_t, std::string> numbered_files(const std::string& folder,
                                                                 std::string_view before,
                                                                 std::string_view after = "");

}  // namespace ptkit::formats
