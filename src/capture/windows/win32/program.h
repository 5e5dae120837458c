// The process that is recorded: started here, or there already.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/windows/win32/handle.h"

namespace ptkit::capture::win32 {

class Program {
 public:
  struct Start {
    bool quiet = false;  // its standard output is discarded
    bool apart = false;  // in a process group of its own: Ctrl-C of this console does not reach it
  };

  // The program is created, and executes nothing until resume().
  [[nodiscard]] static base::Result<Program> start(const std::vector<std::string>& argv, Start how);
  [[nodiscard]] static base::Result<Program> attach(int pid);
  Program(Program&& other) noexcept = default;
  Program& operator=(Program&&) = delete;
  ~Program();  // ends a program that was not resumed

  [[nodiscard]] int pid() const noexcept { return pid_; }
  [[nodiscard]] HANDLE process() const noexcept { return process_.get(); }  // signalled when it has ended
  [[nodiscard]] std::optional<base::Failure> resume();
  // The exit status, if the process ends within so many milliseconds.
  [[nodiscard]] std::optional<int> exit_status(std::uint32_t wait_ms) const;
  // Ends a program that was started apart: by Ctrl-Break, and by force if it is there `wait_ms` later.
  void end(std::uint32_t wait_ms);

 private:
  Program(Handle process, Handle thread, int pid) noexcept;

  Handle process_;
  Handle thread_;  // the first one, as long as it is suspended
  int pid_ = 0;
};

}  // namespace ptkit::capture::win32
