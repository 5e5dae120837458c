// execve of the guest: the emulator would let the new program run on the processor itself.
#pragma once

#include <stdint.h>

namespace ptkit::qemu {

// If the program can run in the emulator, replaces this process by an emulator that runs it, and does not
// return. Otherwise returns, and the emulator goes on with the call as it was: that gives the guest its
// error, or runs a program of another kind natively (which is noted).
void exec_in_emulator(const char* path, char* const* argv, char* const* envp);
// execveat: `path` is relative to `folder`, or empty and `folder` the program itself.
void exec_in_emulator(int folder, const char* path, int flags, char* const* argv, char* const* envp);

}  // namespace ptkit::qemu
