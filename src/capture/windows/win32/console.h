// Ctrl-C, Ctrl-Break, requests of other processes, and the line of progress.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "capture/windows/win32/handle.h"
#include "capture/windows/win32/recorder.h"
#include "capture/windows/win32/requests.h"

namespace ptkit::capture::win32 {

// For one recording at a time, of the whole process.
class Console final : public Listener {
 public:
  explicit Console(bool quiet);
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  ~Console() override;

  [[nodiscard]] Requests& requests() noexcept { return requests_; }

  void began(int /*pid*/) override {}
  void progress(std::uint64_t trace_bytes) override;  // replaces the line before
  void say(const std::string& text);                  // a line, unless quiet

 private:
  Requests requests_;
  Handle finished_;
  bool quiet_;
  bool line_ = false;  // a line of progress stands there
};

// Has the recorder in process `pid` take a snapshot.
[[nodiscard]] std::optional<base::Failure> ask_for_snapshot(std::uint32_t pid);

}  // namespace ptkit::capture::win32
