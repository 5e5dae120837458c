// Names of threads (pthread_setname_np, prctl): the emulator passes them to the kernel, which has the guest's
// own.
#pragma once

#include <stdint.h>

namespace ptkit::qemu {

// Writes a mark with the name of the thread that runs.
void tell_own_name();
// After a system call of the thread that runs: writes a mark if the call named a thread.
void follow_names(int64_t number, int64_t result);

}  // namespace ptkit::qemu
