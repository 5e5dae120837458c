// The seccomp(2) filter for processes with hostile input. The BPF program is written here, so that a
// privileged process needs no library for it.
#pragma once

namespace ptkit::capture::confined {

// For a process that only computes. Any system call kills the process by SIGSYS, except those that read,
// write or seek open descriptors, manage memory that is not executable, or end the process. Needs
// no_new_privs. Returns false if the kernel has no seccomp filters.
[[nodiscard]] bool install_syscall_filter();

}  // namespace ptkit::capture::confined
