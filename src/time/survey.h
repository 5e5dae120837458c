// One pass over the timing packets of a stream: collects the state for queries from any PSB+ on, and the
// limits of the times in each part.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "packet/errata.h"
#include "time/track.h"
#include "trace/bundle.h"

namespace ptkit::time {

class TimeSurvey {
 public:
  TimeSurvey(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
             std::span<const trace::KnownLoss> losses);
  // Continues where a track of packets is that nothing was asked yet, such as one of TimeTrack::from().
  explicit TimeSurvey(TimeTrack track);
  ~TimeSurvey();
  TimeSurvey(const TimeSurvey&) = delete;
  TimeSurvey& operator=(const TimeSurvey&) = delete;

  // Limits of all answers in a part. They hold for every TimeTrack, after any earlier queries.
  struct Limits {
    bool any = false;  // false: the part has no known time
    std::uint64_t least_tsc = 0;
    std::uint64_t most_tsc = 0;  // largest `tsc` of an answer
    // least lower or upper limit in the part, before the limits of earlier queries are applied
    std::uint64_t least_low = 0;
    bool go_back = false;  // a limit is below that of an earlier point: answers depend on earlier queries
  };
  // Limits of the part from the previous `end` to this `end`, an offset. Offsets ascend.
  [[nodiscard]] Limits read_to(std::uint64_t end);

  // State for TimeTrack::from(), if the last read_to() was for the end of the PSB+ at `psb`. Empty: unknown.
  [[nodiscard]] std::vector<std::uint8_t> state_at(std::uint64_t psb) const;

  // True if times of some packets depend on the previous query, so that a part cannot be queried alone.
  [[nodiscard]] bool needs_all_queries() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::time
