// Requests to a running recording, and its status, for any thread.
#pragma once

#include <atomic>

#include "capture/common/recorder.h"

namespace ptkit::capture {

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

}  // namespace ptkit::capture
