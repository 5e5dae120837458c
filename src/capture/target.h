// The process that is recorded: started here, and held at its first instruction until tracing is on; or one
// that runs already.
#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "capture/record_options.h"
#include "capture/tracee.h"

namespace ptkit::capture {

// For one thread: what it starts it has to let go and wait for.
class Target {
 public:
  Target() = default;

  // The program has been executed, and waits before its first instruction.
  [[nodiscard]] static base::Result<Target> launch(const RecordOptions& options, const sigset_t& mask);
  [[nodiscard]] static base::Result<Target> attach(int pid);

  // Lets a program that waits run until its loader has mapped the libraries: it waits at the entry point.
  // Threads and children that begin meanwhile run on.
  [[nodiscard]] std::optional<base::Failure> run_to_entry();
  void go();    // it need not wait any more
  void kill();  // it must not run

  [[nodiscard]] int pid() const noexcept { return pid_; }
  [[nodiscard]] bool ours() const noexcept { return ours_; }
  // Ready when the process ends; -1: none, or it has ended.
  [[nodiscard]] int handle() const noexcept { return ended_ ? -1 : handle_.get(); }
  [[nodiscard]] bool has_ended();
  [[nodiscard]] std::optional<int> exit_status() const noexcept { return exit_status_; }
  void signal(int number) const noexcept;

 private:
  class EntryStop;
  enum class Arrival : std::uint8_t { ENTRY, ANOTHER_PROGRAM };

  void end(int status);
  [[nodiscard]] std::optional<Arrival> wait_for_arrival(const EntryStop& entry);

  int pid_ = 0;
  bool ours_ = false;
  bool held_ = false;
  bool ended_ = false;
  Fd handle_;
  std::optional<int> exit_status_;
};

}  // namespace ptkit::capture
