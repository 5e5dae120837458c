// Assigns streams to threads, by time or by offset, and to the address spaces of that time. For .cpp files of
// this folder only.
#pragma once

#include <vector>

#include "formats/perf_data/processes.h"
#include "formats/perf_event/sideband.h"

namespace ptkit::formats::perf {

// `owners`: the owners by offset of each stream of the bundle. A stream without owners gets the context
// switches of its CPU by time, or belongs to one thread.
void assign_owners(trace::TraceBundle& bundle, const Sideband& sideband,
                   const std::vector<std::vector<Owner>>& owners, Processes& processes);

}  // namespace ptkit::formats::perf
