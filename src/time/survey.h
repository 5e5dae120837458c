// One pass over the timing packets of a stream: what has to be known to ask for times from any PSB+ on, and
// between which limits the times of a part lie.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "packet/errata.h"
#include "trace/bundle.h"

namespace ptkit::time {

class TimeSurvey {
 public:
  TimeSurvey(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
             std::span<const trace::KnownLoss> losses);
  ~TimeSurvey();
  TimeSurvey(const TimeSurvey&) = delete;
  TimeSurvey& operator=(const TimeSurvey&) = delete;

  // Of all answers to questions about a part, whoever asks and whatever was asked before. None: no time is
  // known there.
  struct Limits {
    bool any = false;
    std::uint64_t least_tsc = 0;
    std::uint64_t most_tsc = 0;   // `tsc` of an answer, at most
    std::uint64_t least_low = 0;  // lower and upper limits that are found there, before those of earlier
                                  // questions are minded: at least this
  };
  // Goes on to `end`, an offset; calls ascend. Of the part that begins where the one before ended.
  [[nodiscard]] Limits read_to(std::uint64_t end);

  // For TimeTrack::from(), if read_to() was last called for the end of the PSB+ at `psb`. Empty: not known.
  [[nodiscard]] std::vector<std::uint8_t> state_at(std::uint64_t psb) const;

  // Times of some packets depend on the question before: a part cannot be asked for alone.
  [[nodiscard]] bool needs_all_questions() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::time
