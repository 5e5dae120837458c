// Replaces paths, command lines, and names of threads and machines for a redacted bundle. Build-ids, symbol
// names, addresses, offsets, ids and times stay. For .cpp files of this folder only.
#pragma once

#include "formats/common/json.h"
#include "trace/bundle.h"

namespace ptkit::formats::ptk {

[[nodiscard]] trace::Stream redacted(std::uint32_t id, trace::Stream stream);      // named by its tid or cpu
[[nodiscard]] trace::ImageFile redacted(std::uint32_t id, trace::ImageFile file);  // named "file-ID"
[[nodiscard]] trace::Sideband redacted(trace::Sideband record);

// Keeps members of META that are known to hold nothing private, and all numbers and truth values.
[[nodiscard]] Json redacted_meta(const Json& meta);
// Returns true if the warning names no path.
[[nodiscard]] bool names_no_path(const std::string& warning);

}  // namespace ptkit::formats::ptk
