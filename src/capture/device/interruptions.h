// Where trace is missing in a buffer that is filled again and again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ptkit/ptkit_abi.h"

namespace ptkit::capture {

struct Interruption {
  std::uint64_t position = 0;        // counted as ptkit_status.head
  std::optional<base::Status> loss;  // nullopt: nothing is missing (a pause)
};

class Interruptions {
 public:
  // Those since the last status, in order of their positions. `pauses` are among them. Between two drains the
  // buffer can be full twice: before the space of the first one is consumed, and after it. The driver returns
  // the positions of its last two stops. Where TraceEn was cleared, trace is missing afterwards.
  [[nodiscard]] std::vector<Interruption> take(const ptkit_status& status,
                                               const std::vector<std::uint64_t>& pauses = {}) {
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

 private:
  std::uint64_t stops_ = 0;
  std::uint64_t clears_ = 0;
};

}  // namespace ptkit::capture
