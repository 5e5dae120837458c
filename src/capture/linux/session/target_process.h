// The recorded process. A launched program stops at its first instruction (ptrace) until tracing is on. A
// running process is attached by a pidfd, without ptrace.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "capture/common/record_options.h"
#include "capture/linux/process/process.h"
#include "capture/linux/process/tracee.h"

namespace ptkit::capture {

// ptrace and waitpid() bind a launched program to the calling thread, so one thread calls all functions.
class TargetProcess {
 public:
  TargetProcess() = default;

  // Executes the program and stops it before its first instruction.
  [[nodiscard]] static base::Result<TargetProcess> launch(const RecordOptions& options, const sigset_t& mask);
  [[nodiscard]] static base::Result<TargetProcess> attach(int pid);

  // Continues a stopped program to its entry point, where the loader has mapped the libraries. Threads and
  // children that begin before that are detached.
  [[nodiscard]] std::optional<base::Failure> run_to_entry();
  // Detaches from a stopped program: it continues.
  void release();
  // Kills a launched program.
  void kill();

  [[nodiscard]] int pid() const noexcept { return pid_; }
  [[nodiscard]] bool launched() const noexcept { return launched_; }
  // A pidfd, which is ready when the process has exited. -1: no process, or exited already.
  [[nodiscard]] int handle() const noexcept { return ended_ ? -1 : handle_.get(); }
  [[nodiscard]] bool has_ended();
  [[nodiscard]] std::optional<int> exit_status() const noexcept { return exit_status_; }
  void signal(int number) const noexcept;

 private:
  class EntryBreakpoint;
  enum class Arrival : std::uint8_t { ENTRY, EXEC };

  void end(int status);
  [[nodiscard]] std::optional<Arrival> wait_for_arrival(const EntryBreakpoint& entry);

  int pid_ = 0;
  bool launched_ = false;
  bool held_ = false;
  bool ended_ = false;
  Fd handle_;
  std::optional<int> exit_status_;
};

}  // namespace ptkit::capture
