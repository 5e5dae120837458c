// Branch records of 32-bit programs: a 64-bit kernel's records do not say which code is 32-bit code, the
// programs' files do. For .cpp files of this folder only.
#pragma once

#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Records that lead below 4 GiB in a process whose program is a 32-bit one get CODE32. Who runs, and the code
// of all spaces, have to be in the bundle.
void mark_32_bit_code(trace::TraceBundle& bundle);

}  // namespace ptkit::formats::perf
