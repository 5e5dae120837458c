// Aligns context switches to PIP packets. The kernel records switches by time only.
#pragma once

#include <vector>

#include "capture/linux/output/bundle_output.h"
#include "processes/switch_alignment.h"

namespace ptkit::capture {

// Reads the recorded trace once, from the bundle, and adds the stream offsets of switches to the bundle.
// Returns warnings.
[[nodiscard]] std::vector<trace::Warning> add_switch_offsets(BundleOutput& output,
                                                             processes::SwitchAlignment options);

}  // namespace ptkit::capture
