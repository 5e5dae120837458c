// Counts the events of triggers, and decides when one is due.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "capture/common/record_options.h"

namespace ptkit::capture {

class TriggerCounts {
 public:
  using Action = TriggerRequest::Action;

  explicit TriggerCounts(const std::vector<TriggerRequest>& triggers)
      : triggers_(triggers),
        counts_(triggers.size()),
        waits_for_start_(std::any_of(triggers.begin(), triggers.end(),
                                     [](const TriggerRequest& one) { return one.action == Action::START; })) {
  }

  // An event of a trigger, by its index. Returns the action that is due now. STOP and SNAPSHOT count only
  // events while recording is on.
  [[nodiscard]] std::optional<Action> on_event(std::uint32_t trigger, bool paused) {
    const TriggerRequest& request = triggers_[trigger];
    const bool counts = request.action == Action::START ? waits_for_start_ : !paused;
    if (!counts || !request.should_fire(++counts_[trigger])) return std::nullopt;
    if (request.action == Action::START) waits_for_start_ = false;
    return request.action;
  }
  // A START trigger starts the recording, and has not fired yet.
  [[nodiscard]] bool waits_for_start() const noexcept { return waits_for_start_; }

 private:
  std::vector<TriggerRequest> triggers_;
  std::vector<std::uint64_t> counts_;  // by trigger: events so far
  bool waits_for_start_ = false;
};

}  // namespace ptkit::capture
