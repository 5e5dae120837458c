// Counts the events of triggers, and decides when one is due.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capture/common/record_options.h"

namespace ptkit::capture {

class TriggerCounts {
 public:
  explicit TriggerCounts(const std::vector<TriggerRequest>& triggers);

  // An event of a trigger, by its index. Returns the action that is due now. STOP and SNAPSHOT count only
  // events while recording is on.
  [[nodiscard]] std::optional<TriggerRequest::Action> on_event(std::uint32_t trigger, bool paused);
  // A START trigger starts the recording, and has not fired yet.
  [[nodiscard]] bool waits_for_start() const noexcept { return waits_for_start_; }

 private:
  std::vector<TriggerRequest> triggers_;
  std::vector<std::uint64_t> counts_;  // by trigger: events so far
  bool waits_for_start_ = false;
};

}  // namespace ptkit::capture
