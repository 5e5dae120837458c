// Files whose names hold a number: ptout.3, cpu03_bin.bin.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats {

// The number between `before` and `after` that a path's last part consists of.
[[nodiscard]] std::optional<std::int64_t> number_in_name(const std::string& path, std::string_view before,
                                                         std::string_view after = "");

// The files of a folder whose names are of this form, by number.
[[nodiscard]] std::map<std::int64_t, std::string> numbered_files(const std::string& folder,
                                                                 std::string_view before,
                                                                 std::string_view after = "");

// Each such file as the stream of the processor with its number. Empty files are left out; if all are, that
// is a failure about `path`.
[[nodiscard]] base::Result<std::vector<trace::Stream>> processor_streams(
    const std::string& path, const std::map<std::int64_t, std::string>& files);

}  // namespace ptkit::formats
