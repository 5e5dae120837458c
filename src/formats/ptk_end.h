// How a recording ended, as far as its bundle tells: sentences for those who open it. For .cpp files of this
// folder only.
#pragma once

#include <string>
#include <vector>

#include "formats/json.h"
#include "trace/bundle.h"

namespace ptkit::formats::ptk {

// `finished`: the writer got to its end. Empty if nothing is missing. Without the path and the last dot.
[[nodiscard]] std::vector<std::string> describe_end(const Json& meta, const trace::TraceBundle& bundle,
                                                    bool finished);

}  // namespace ptkit::formats::ptk
