// The slowest recorder, for machines without Processor Trace, driver and emulator: it single-steps a program
// with ptrace() and encodes the executed instructions as Processor Trace. It follows threads, children and
// 32-bit programs, and writes a .ptk bundle.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "capture/common/record_options.h"

namespace ptkit::capture {

class StepRecorder {
 public:
  explicit StepRecorder(RecordOptions options) : options_(std::move(options)) {}

  // Blocks until the program and all its descendants have ended, or a stop was requested. Waits in a thread
  // of its own, so it does not reap other children of the calling process.
  [[nodiscard]] base::Result<RecordResult> run();

  // From any thread: ends the recording. Sends SIGINT to the program, and SIGKILL some seconds later.
  void request_stop() noexcept;

  [[nodiscard]] std::uint64_t instructions() const noexcept {
    return instructions_.load(std::memory_order_relaxed);
  }

 private:
  friend class StepSession;
  RecordOptions options_;
  std::atomic<bool> stop_{false};
  std::atomic<int> wake_{0};  // a traced process; request_stop() sends it a signal to end waitpid()
  std::atomic<std::uint64_t> instructions_{0};
};

}  // namespace ptkit::capture
