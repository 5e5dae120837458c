// A session of ETW's kernel provider.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "capture/windows/kernel_events.h"

namespace ptkit::capture {

// Tests implement a fake session.
class EventSession {
 public:
  struct Losses {
    std::uint64_t events = 0;
    std::uint64_t buffers = 0;
    std::uint64_t malformed = 0;  // events that could not be parsed
    bool ended_early = false;     // delivery ended before stop()
  };

  virtual ~EventSession() = default;
  // When it returns, each context switch is logged. The failure has the reason why that is not possible.
  [[nodiscard]] virtual std::optional<base::Failure> start() = 0;
  // Events since the last call. Those of a CPU are in order of time.
  [[nodiscard]] virtual std::vector<KernelEvent> take() = 0;
  // Delivers what is still in buffers: take() has all events then, and losses() counts all.
  virtual void stop() = 0;
  [[nodiscard]] virtual Losses losses() const = 0;
};

}  // namespace ptkit::capture
