// Whose a stream is, when or from where on; address spaces and code of that time. For .cpp files of this
// folder only.
#pragma once

#include <vector>

#include "formats/perf_processes.h"
#include "formats/perf_sideband.h"

namespace ptkit::formats::perf {

// `owners`: for each stream of the bundle, whose it is by place; streams without any get switches by time, or
// are one thread's.
void assign_owners(trace::TraceBundle& bundle, const Sideband& sideband,
                   const std::vector<std::vector<Owner>>& owners, Processes& processes);

}  // namespace ptkit::formats::perf
