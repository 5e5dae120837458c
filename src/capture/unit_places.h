// Where in the trace its switches were, if the kernel told of them by time alone.
#pragma once

#include <string>
#include <vector>

#include "capture/bundle_output.h"
#include "formats/switch_places.h"

namespace ptkit::capture {

// Reads what was recorded once, from the bundle, which gets what is found out. Sentences: what is missing.
[[nodiscard]] std::vector<std::string> add_places(BundleOutput& output, formats::SwitchPlacing placing);

}  // namespace ptkit::capture
