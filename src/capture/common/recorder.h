// The interface of all recorders: requests to a running recording, and its status.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/status.h"
#include "capture/common/record_options.h"

namespace ptkit::capture {

struct RecordStatus {
  int pid = 0;                     // the recorded process; 0: none, or not started yet
  bool started = false;            // recording has started
  std::uint64_t instructions = 0;  // executed so far; 0: the back end does not count them
  std::uint64_t trace_bytes = 0;   // of the streams so far; 0: not known
};

class Recorder {
 public:
  using Problem = std::optional<base::Failure>;

  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  // Starts the recording, and blocks until it has ended: by the end of the program and its children, by the
  // time limit, or by a request. Once only.
  [[nodiscard]] virtual base::Result<RecordResult> run() = 0;

  // Any thread may call these while run() runs. A failure: the back end has no such request.
  // Ends the recording. A launched program is interrupted, and killed after kExitTime.
  virtual void stop() noexcept = 0;
  // Ends the recording. The recorded process continues.
  [[nodiscard]] virtual Problem detach() = 0;
  // Ring mode: writes the contents of the rings to the bundle.
  [[nodiscard]] virtual Problem snapshot() = 0;
  // Records nothing until resume().
  [[nodiscard]] virtual Problem pause() = 0;
  [[nodiscard]] virtual Problem resume() = 0;
  [[nodiscard]] virtual RecordStatus status() const noexcept = 0;
};

// Requests and status for any thread.
struct RecordRequests {
  std::atomic<bool> stop{false};
  std::atomic<bool> detach{false};
  std::atomic<bool> snapshot{false};  // the recording clears it
  std::atomic<bool> pause{false};
};

// The recording's thread writes it.
struct RecordProgress {
  std::atomic<int> pid{0};
  std::atomic<bool> started{false};
  std::atomic<std::uint64_t> instructions{0};
  std::atomic<std::uint64_t> trace_bytes{0};

  [[nodiscard]] RecordStatus status() const noexcept {
    return {pid, started, instructions.load(std::memory_order_relaxed),
            trace_bytes.load(std::memory_order_relaxed)};
  }
};

// A recorder that takes all requests. Its session looks at them.
class RequestedRecorder : public Recorder {
 public:
  void stop() noexcept override { requests_.stop = true; }
  [[nodiscard]] Problem detach() override { return set(requests_.detach, true); }
  [[nodiscard]] Problem snapshot() override { return set(requests_.snapshot, true); }
  [[nodiscard]] Problem pause() override { return set(requests_.pause, true); }
  [[nodiscard]] Problem resume() override { return set(requests_.pause, false); }
  [[nodiscard]] RecordStatus status() const noexcept override { return progress_.status(); }

 protected:
  RecordRequests requests_;
  RecordProgress progress_;

 private:
  static Problem set(std::atomic<bool>& request, bool value) noexcept {
    request = value;
    return {};
  }
};

// The recorder of options.backend. BAD_CONFIG or UNSUPPORTED: this system does not have it, or its options.
[[nodiscard]] base::Result<std::unique_ptr<Recorder>> make_recorder(RecordOptions options);

}  // namespace ptkit::capture
