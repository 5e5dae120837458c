// What a redacted bundle says instead of paths, command lines, and names of threads and machines. Build-ids,
// names of symbols, addresses, offsets, ids and times stay. For .cpp files of this folder only.
#pragma once

#include "formats/json.h"
#include "trace/bundle.h"

namespace ptkit::formats::ptk {

[[nodiscard]] trace::Stream redacted(std::uint32_t id, trace::Stream stream);      // named by its tid or cpu
[[nodiscard]] trace::ImageFile redacted(std::uint32_t id, trace::ImageFile file);  // named "file-ID"
[[nodiscard]] trace::Sideband redacted(trace::Sideband record);

// Members of META that are known to tell nothing, and numbers and truth values under other names.
[[nodiscard]] Json redacted_meta(const Json& meta);
// The warnings that name no path.
[[nodiscard]] bool is_neutral(const std::string& warning);

}  // namespace ptkit::formats::ptk
