// Files with a number, often a CPU, in their names: ptout.3, cpu03_bin.bin.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats {

// Returns N if the path's file name is `before` + N + `after`.
[[nodiscard]] std::optional<std::int64_t> number_in_name(const std::string& path, std::string_view before,
                                                         std::string_view after = "");

// Returns the files of a folder that have such names, by number.
[[nodiscard]] std::map<std::int64_t, std::string> numbered_files(const std::string& folder,
                                                                 std::string_view before,
                                                                 std::string_view after = "");

// Returns one stream for each file, with the number as its CPU. Empty files are left out. If all files are
// empty, the failure names `path`.
[[nodiscard]] base::Result<std::vector<trace::Stream>> cpu_streams(
    const std::string& path, const std::map<std::int64_t, std::string>& files);

}  // namespace ptkit::formats
