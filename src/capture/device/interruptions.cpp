#include "capture/device/interruptions.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ptkit::capture {

// Between two drains the buffer can be full twice: before the room of the first one is consumed, and after
// it. The driver returns the positions of its last two stops. Where TraceEn was cleared, trace is missing
// afterwards.
std::vector<Interruption> Interruptions::take(const ptkit_status& status,
                                              const std::vector<std::uint64_t>& pauses) {
  const std::uint64_t stops = std::min<std::uint64_t>(status.stops - std::exchange(stops_, status.stops),
                                                      std::size(status.stopped_at));
  std::vector<Interruption> all;
  for (std::uint64_t i = stops; i-- > 0;) all.push_back({status.stopped_at[i], base::Status::BUFFER_FULL});
  if (std::exchange(clears_, status.clears) != status.clears)
    all.push_back({status.cleared_at, base::Status::NOT_TRACED});
  for (const std::uint64_t position : pauses) all.push_back({position, std::nullopt});
  std::stable_sort(all.begin(), all.end(),
                   [](const Interruption& a, const Interruption& b) { return a.position < b.position; });
  return all;
}

}  // namespace ptkit::capture
