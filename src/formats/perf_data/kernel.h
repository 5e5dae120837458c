// Reads the kernel's code and symbols that perf record --kcore saved: kcore_dir/kcore and kallsyms. For .cpp
// files of this folder only.
#pragma once

#include <map>
#include <string>

#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Returns false if the folder has no kcore.
[[nodiscard]] bool add_kernel(trace::TraceBundle& bundle, const std::string& folder);

// Returns the kernel's code in the bundle, by address.
[[nodiscard]] std::map<std::uint64_t, trace::CodeRegion> kernel_regions(const trace::TraceBundle& bundle);

}  // namespace ptkit::formats::perf
