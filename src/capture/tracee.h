// What ptrace and /proc give: starting a program under trace, steps, registers, memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "insn/insn.h"

namespace ptkit::capture {

using base::Fd;

// The registers that recording needs.
struct Registers {
  std::uint64_t ip = 0;
  std::uint64_t sp = 0;
  std::uint64_t result = 0;   // RAX
  std::int64_t syscall = -1;  // number of the system call that was left last; -1: none
  insn::ExecMode mode = insn::ExecMode::BITS64;
};

// A program that waits to be let go; the calling thread is its tracer.
struct Launch {
  pid_t pid = 0;
  Fd go;     // close it to let the program begin
  Fd error;  // errno of a failed exec, if anything
};
[[nodiscard]] base::Result<Launch> launch(const std::vector<std::string>& argv, const void* signal_mask,
                                          bool quiet);
// Why ptrace() gave `error`, and what helps: `scope` is what /proc/sys/kernel/yama/ptrace_scope has.
[[nodiscard]] base::Failure ptrace_refusal(int error, const std::string& scope);
// Why the program could not be executed, or 0.
[[nodiscard]] int exec_error(const Launch& launch);
// What wait() gave: the exit status, or 128 + signal.
[[nodiscard]] int exit_status_of(int wait_status) noexcept;

[[nodiscard]] bool read_registers(pid_t tid, Registers& out);
[[nodiscard]] bool read_ip(pid_t tid, std::uint64_t& out);
[[nodiscard]] bool set_ip(pid_t tid, std::uint64_t ip);
[[nodiscard]] int signal_code(pid_t tid);  // si_code of the stop; -1000 if it cannot be read
[[nodiscard]] unsigned long event_message(pid_t tid);
// Whether a thread that is held is killed if its tracer ends. What it begins from then on is as it is.
[[nodiscard]] bool end_with_tracer(pid_t tid, bool ends);
void step(pid_t tid, int signal);
void listen(pid_t tid);     // stay in a group stop
void interrupt(pid_t tid);  // ask for a stop
void detach(pid_t tid, int signal);

// Reads a process's memory, whatever its protection.
class Memory {
 public:
  explicit Memory(pid_t pid);
  [[nodiscard]] std::size_t read(std::uint64_t address, std::span<std::uint8_t> out) const;  // bytes read
  [[nodiscard]] bool write_byte(std::uint64_t address, std::uint8_t value) const;

 private:
  Fd fd_;
};

// One line of /proc/PID/maps, or what a record of the kernel says of a mapping.
struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::string path;          // empty: anonymous
  std::uint64_t device = 0;  // as makedev() makes it
  std::uint64_t inode = 0;   // 0: no file, or not recorded
  std::string build_id{};    // hex; empty: not recorded
};
[[nodiscard]] std::vector<Mapping> read_maps(pid_t pid);
[[nodiscard]] std::vector<Mapping> read_maps_in(const std::string& folder);  // "/proc/PID"
// Where /proc tells of a process: "/proc/PID", or of another thread once its first one has ended.
[[nodiscard]] std::string process_folder(pid_t pid);
[[nodiscard]] std::vector<pid_t> processes();  // that can be seen
[[nodiscard]] std::vector<pid_t> threads_of(pid_t pid);
[[nodiscard]] bool is_thread_of(pid_t pid, pid_t tid);
[[nodiscard]] std::string thread_name(pid_t pid, pid_t tid);
[[nodiscard]] std::string program_path(pid_t pid);

}  // namespace ptkit::capture
