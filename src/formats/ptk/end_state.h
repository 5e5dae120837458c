// Describes how a recording ended, in warnings for the user. For .cpp files of this folder only.
#pragma once

#include <vector>

#include "formats/common/json.h"
#include "trace/bundle.h"

namespace ptkit::formats::ptk {

// `finished`: the writer wrote the index. Warnings have no subject. No warning: the recording is complete.
[[nodiscard]] std::vector<trace::Warning> describe_end(const Json& meta, const trace::TraceBundle& bundle,
                                                       bool finished);

}  // namespace ptkit::formats::ptk
