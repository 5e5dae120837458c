// The process that is recorded: started here, or there already.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/handle.h"

namespace ptkit::client {

class Program {
 public:
  // The program is created, and executes nothing until resume().
  [[nodiscard]] static base::Result<Program> start(const std::vector<std::string>& argv);
  [[nodiscard]] static base::Result<Program> attach(int pid);
  Program(Program&& other) noexcept = default;
  Program& operator=(Program&&) = delete;
  ~Program();  // ends a program that was not resumed

  [[nodiscard]] int pid() const noexcept { return pid_; }
  [[nodiscard]] HANDLE process() const noexcept { return process_.get(); }  // signalled when it has ended
  [[nodiscard]] std::optional<base::Failure> resume();
  // The exit status, if the process ends within so many milliseconds.
  [[nodiscard]] std::optional<int> exit_status(std::uint32_t wait_ms) const;

 private:
  Program(Handle process, Handle thread, int pid) noexcept;

  Handle process_;
  Handle thread_;  // the first one, as long as it is suspended
  int pid_ = 0;
};

}  // namespace ptkit::client
