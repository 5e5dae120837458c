// The recorder of last resort: runs a program by single steps (ptrace) and encodes what it executes as
// Processor Trace. Threads, children and 32-bit programs are followed; the result is a .ptk bundle.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace ptkit::capture {

struct StepOptions {
  std::vector<std::string> argv;  // the program (searched for in PATH) and its arguments
  std::string output;             // path of the bundle
  std::string
      truth_folder;  // if not empty: stream-N.u64 gets the IP of every instruction of stream N, in order
  bool return_compression = true;
  bool tsc = true;
  bool mtc = true;
  bool cyc = true;
  bool tnt_64 = false;              // long TNT packets where they save bytes
  std::uint32_t psb_period = 4096;  // bytes: a power of two, 2048 at least
  std::uint8_t mtc_period =
      8;  // MTCFreq; a step takes some ten thousand TSC ticks, so short periods cost much
  std::uint8_t cyc_threshold = 0;      // CycThresh
  bool quiet = false;                  // the program's standard output is discarded
  std::uint64_t max_instructions = 0;  // then the program runs on untraced; 0: no limit
};

struct StepResult {
  int exit_status = 0;  // of the program; 128 + signal if it was killed
  std::uint64_t instructions = 0;
  std::uint32_t streams = 0;
  std::uint64_t trace_bytes = 0;
  std::uint64_t bundle_bytes = 0;
  bool interrupted = false;  // request_stop() ended it
  bool limited = false;      // max_instructions ended it
  std::vector<std::string> warnings;
};

class StepRecorder {
 public:
  explicit StepRecorder(StepOptions options) : options_(std::move(options)) {}

  // Blocks until the program and all that it started have ended, or a stop was asked for. Uses a thread of
  // its own, so other children of the calling process are left alone.
  [[nodiscard]] base::Result<StepResult> run();

  // From any thread: ends the recording. The program gets SIGINT, and SIGKILL if it is still there after some
  // seconds.
  void request_stop() noexcept;

  [[nodiscard]] std::uint64_t instructions() const noexcept {
    return instructions_.load(std::memory_order_relaxed);
  }

 private:
  friend class StepSession;
  StepOptions options_;
  std::atomic<bool> stop_{false};
  std::atomic<int> wake_{0};  // a traced process, to be woken by a stop
  std::atomic<std::uint64_t> instructions_{0};
};

}  // namespace ptkit::capture
