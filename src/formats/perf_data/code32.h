// Marks branch records of 32-bit programs. A 64-bit kernel's records do not show 32-bit code; the ELF class
// of the program does. For .cpp files of this folder only.
#pragma once

#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Sets RECORD_CODE32 in records with a target below 4 GiB in a process that runs a 32-bit program. The bundle
// must already hold the context switches and the code of all spaces.
void mark_32_bit_code(trace::TraceBundle& bundle);

}  // namespace ptkit::formats::perf
