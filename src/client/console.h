// Ctrl-C, Ctrl-Break, requests of other processes, and the line of progress.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "client/handle.h"

namespace ptkit::client {

// For one recording at a time, of the whole process.
class Console {
 public:
  explicit Console(bool quiet);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console();

  [[nodiscard]] HANDLE stop() const noexcept { return stop_.get(); }          // stays signalled
  [[nodiscard]] HANDLE snapshot() const noexcept { return snapshot_.get(); }  // for one wait

  void progress(std::uint64_t trace_bytes);  // replaces the line before
  void say(const std::string& text);         // a line, unless quiet

 private:
  Handle stop_;
  Handle snapshot_;
  Handle finished_;
  bool quiet_;
  bool line_ = false;  // a line of progress stands there
};

// Has the recorder in process `pid` take a snapshot.
[[nodiscard]] std::optional<base::Failure> ask_for_snapshot(std::uint32_t pid);

}  // namespace ptkit::client
