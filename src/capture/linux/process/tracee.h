// Functions of ptrace(2): start a traced program, single-step, read registers, detach.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/fd.h"
#include "base/status.h"
#include "code/insn/insn.h"

namespace ptkit::capture {

using base::Fd;

// The registers that recorders need.
struct Registers {
  std::uint64_t ip = 0;
  std::uint64_t sp = 0;
  std::uint64_t result = 0;   // RAX
  std::int64_t syscall = -1;  // number of the last system call (ORIG_RAX); -1: none
  code::insn::ExecMode mode = code::insn::ExecMode::BITS64;
};

// A program that waits before its exec(). The calling thread is its tracer.
struct Launch {
  pid_t pid = 0;
  Fd go;     // closing it starts the program
  Fd error;  // has the errno of a failed exec()
};
[[nodiscard]] base::Result<Launch> launch(const std::vector<std::string>& argv, const void* signal_mask,
                                          bool quiet);
// The failure and the remedy for an errno of ptrace(). `scope` is the text of
// /proc/sys/kernel/yama/ptrace_scope.
[[nodiscard]] base::Failure ptrace_failure(int error, const std::string& scope);
// The errno of a failed exec(), or 0.
[[nodiscard]] int exec_error(const Launch& launch);

[[nodiscard]] bool read_registers(pid_t tid, Registers& out);
[[nodiscard]] bool read_ip(pid_t tid, std::uint64_t& out);
[[nodiscard]] bool set_ip(pid_t tid, std::uint64_t ip);
[[nodiscard]] int signal_code(pid_t tid);  // si_code of the stop; -1000 if it cannot be read
[[nodiscard]] unsigned long event_message(pid_t tid);
// Sets whether the kernel kills a stopped thread if its tracer ends (PTRACE_O_EXITKILL). Its later children
// inherit the setting.
[[nodiscard]] bool end_with_tracer(pid_t tid, bool ends);
void step(pid_t tid, int signal);
void listen(pid_t tid);     // stays in a group stop
void interrupt(pid_t tid);  // requests a stop
void detach(pid_t tid, int signal);

}  // namespace ptkit::capture
