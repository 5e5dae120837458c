// Who ran, by place instead of by time, where the kernel was traced. For .cpp files of this folder only.
#pragma once

#include "trace/bundle.h"

namespace ptkit::formats {

// A recorder tells of switches by its clock, which is taken before or after the page tables change, and the
// trace knows its own time only so well. PIP packets say exactly where page tables change. Streams that have
// some get their switches by offset: who comes with other page tables, at the PIP that belongs to it; others
// (threads of one process, the idle task, kernel threads) by time, as before. Code of all spaces has to be in
// the bundle. `records_lost`: some switches may not be told; then page tables of somebody who is not told to
// run are one, and otherwise they are what he who runs has for a while (vfork(), exec()).
void place_switches(trace::TraceBundle& bundle, bool records_lost);

}  // namespace ptkit::formats
