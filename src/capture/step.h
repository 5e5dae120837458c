// The recorder of last resort: runs a program by single steps (ptrace) and encodes what it executes as
// Processor Trace. Threads, children and 32-bit programs are followed; the result is a .ptk bundle.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "capture/record_options.h"

namespace ptkit::capture {

class StepRecorder {
 public:
  explicit StepRecorder(RecordOptions options) : options_(std::move(options)) {}

  // Blocks until the program and all that it started have ended, or a stop was asked for. Uses a thread of
  // its own, so other children of the calling process are left alone.
  [[nodiscard]] base::Result<RecordResult> run();

  // From any thread: ends the recording. The program gets SIGINT, and SIGKILL if it is still there after some
  // seconds.
  void request_stop() noexcept;

  [[nodiscard]] std::uint64_t instructions() const noexcept {
    return instructions_.load(std::memory_order_relaxed);
  }

 private:
  friend class StepSession;
  RecordOptions options_;
  std::atomic<bool> stop_{false};
  std::atomic<int> wake_{0};  // a traced process, to be woken by a stop
  std::atomic<std::uint64_t> instructions_{0};
};

}  // namespace ptkit::capture
