// The slowest recorder, for machines without Processor Trace, driver and emulator: it single-steps a program
// with ptrace() and encodes the executed instructions as Processor Trace. It follows threads, children and
// 32-bit programs, and writes a .ptk bundle.
#pragma once

#include <atomic>
#include <cstdint>

#include "capture/common/errors.h"
#include "capture/common/recorder.h"

namespace ptkit::capture {

class StepRecorder final : public Recorder {
 public:
  explicit StepRecorder(RecordOptions options) : options_(std::move(options)) {
    options_.backend = Backend::STEP;
  }

  // Waits in a thread of its own, so it does not reap other children of the calling process.
  [[nodiscard]] base::Result<RecordResult> run() override;
  void stop() noexcept override;
  [[nodiscard]] Problem detach() override { return stops_only(); }
  [[nodiscard]] Problem snapshot() override { return stops_only(); }
  [[nodiscard]] Problem pause() override { return stops_only(); }
  [[nodiscard]] Problem resume() override { return stops_only(); }
  [[nodiscard]] RecordStatus status() const noexcept override {
    const std::uint64_t count = instructions_.load(std::memory_order_relaxed);
    return {.started = count != 0, .instructions = count};
  }

 private:
  friend class StepSession;
  [[nodiscard]] static Problem stops_only() {
    return unsupported("backend 'step' can only be stopped; use backend='emulator'");
  }

  RecordOptions options_;
  std::atomic<bool> stop_{false};
  std::atomic<int> wake_{0};  // a traced process; stop() sends it a signal to end waitpid()
  std::atomic<std::uint64_t> instructions_{0};
};

}  // namespace ptkit::capture
