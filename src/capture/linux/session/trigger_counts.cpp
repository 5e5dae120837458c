#include "capture/linux/session/trigger_counts.h"

#include <algorithm>

namespace ptkit::capture {

using Action = TriggerRequest::Action;

TriggerCounts::TriggerCounts(const std::vector<TriggerRequest>& triggers)
    : triggers_(triggers),
      counts_(triggers.size()),
      waits_for_start_(std::any_of(triggers.begin(), triggers.end(),
                                   [](const TriggerRequest& one) { return one.action == Action::START; })) {}

std::optional<Action> TriggerCounts::on_event(std::uint32_t trigger, bool paused) {
  const TriggerRequest& request = triggers_[trigger];
  const bool counts = request.action == Action::START ? waits_for_start_ : !paused;
  if (!counts || !request.should_fire(++counts_[trigger])) return std::nullopt;
  if (request.action == Action::START) waits_for_start_ = false;
  return request.action;
}

}  // namespace ptkit::capture
