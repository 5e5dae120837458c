// seccomp(2) filters for processes with hostile input. The BPF programs are written here, so that a
// privileged process needs no library for them.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace ptkit::base::confined {

class SystemCallFilter {
 public:
  // For a process that only computes. Any system call kills the process by SIGSYS, except those that read,
  // write or seek open descriptors, manage memory that is not executable, or end the process.
  [[nodiscard]] static SystemCallFilter for_computing();
  // For a process that executes another program, which needs its libraries: files can be opened for reading
  // alone, and mapped. Other system calls fail with ENOSYS: those of sockets, processes and signals.
  [[nodiscard]] static SystemCallFilter for_program();

  // Needs no_new_privs. Returns false if the kernel has no seccomp filters. Takes no memory.
  [[nodiscard]] bool install() const noexcept;

 private:
  explicit SystemCallFilter(std::vector<sock_filter> program) : program_(std::move(program)) {}

  std::vector<sock_filter> program_;
};

}  // namespace ptkit::base::confined
