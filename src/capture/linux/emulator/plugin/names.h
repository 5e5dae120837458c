// Names of threads (pthread_setname_np(), prctl()). The emulator passes the system calls to the kernel, so
// the kernel has the guest's names.
#pragma once

#include <stdint.h>

namespace ptkit::capture::plugin {

// Writes a NAME mark for the calling thread.
void mark_own_name();
// After a system call of the calling thread: writes a NAME mark if the call named a thread.
void follow_names(int64_t number, int64_t result);

}  // namespace ptkit::capture::plugin
