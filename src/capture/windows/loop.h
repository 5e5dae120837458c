// The loop of one recording with the Windows driver: waits, writes what is new, and follows requests.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "capture/windows/session.h"

namespace ptkit::capture {

enum class LoopEvent : std::uint8_t {
  NOTHING,
  STOP,      // ends the recording, and the program
  DETACH,    // ends the recording
  SNAPSHOT,  // ring: its contents are written to the bundle
  PAUSE,
  RESUME,
  PROCESS_ENDED,
};

// Interface of Windows that the loop calls. Tests implement a fake one.
class LoopHost {
 public:
  virtual ~LoopHost() = default;
  // Waits for an event or for trace, some 100 ms at most.
  [[nodiscard]] virtual base::Result<LoopEvent> wait() = 0;
  [[nodiscard]] virtual std::uint64_t now_ms() const = 0;
  virtual void progress(std::uint64_t trace_bytes) = 0;
};

class WindowsLoop {
 public:
  // `limit_ms`: the duration; 0: no limit.
  WindowsLoop(WindowsSession& session, LoopHost& host, std::uint64_t limit_ms)
      : session_(&session), host_(&host), limit_ms_(limit_ms), begin_ms_(host.now_ms()) {}

  // Returns when the recording is over: its session is still to be ended.
  [[nodiscard]] WindowsSession::Problem run();
  // STOP ended it.
  [[nodiscard]] bool interrupted() const noexcept { return interrupted_; }
  // The duration ended it.
  [[nodiscard]] bool limited() const noexcept { return limited_; }

 private:
  [[nodiscard]] WindowsSession::Problem handle(LoopEvent event);
  void look_at_clock();

  WindowsSession* session_;
  LoopHost* host_;
  std::uint64_t limit_ms_;
  std::uint64_t begin_ms_;
  std::uint64_t flushed_ms_ = 0;
  std::uint64_t shown_ms_ = 0;
  bool interrupted_ = false;
  bool limited_ = false;
  bool ended_ = false;
};

}  // namespace ptkit::capture
