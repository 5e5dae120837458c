// Kernel code that was executed and has neither a symbol nor a record, such as a filter of seccomp.
#pragma once

#include <functional>
#include <optional>

#include "capture/linux/output/bundle_output.h"
#include "capture/linux/sideband/kernel_code.h"

namespace ptkit::capture {

// Reads the recorded trace once, from the bundle, and adds the pages of such code to the bundle as they are
// now. Fails if code is gone, or if `go_on` ends the search.
[[nodiscard]] std::optional<base::Failure> save_missing_code(BundleOutput& output, const KernelCode& kernel,
                                                             const std::function<bool()>& go_on);

}  // namespace ptkit::capture
