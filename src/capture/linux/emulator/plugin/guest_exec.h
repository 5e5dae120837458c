// execve() of the guest. The emulator itself would execute the new program natively.
#pragma once

#include <stdint.h>

namespace ptkit::capture::plugin {

// If the emulator can run the program, replaces this process by an emulator that runs it, and does not
// return. Otherwise returns, and the emulator continues the system call: it fails with the guest's error, or
// executes a program of another kind natively (a note in the log says so).
void exec_in_emulator(const char* path, char* const* argv, char* const* envp);
// execveat(): `path` is relative to `folder`. If `path` is empty, `folder` is the program.
void exec_in_emulator(int folder, const char* path, int flags, char* const* argv, char* const* envp);

}  // namespace ptkit::capture::plugin
