#include "time/survey.h"

#include <algorithm>
#include <optional>

#include "time/calibrate.h"
#include "time/timeline.h"

namespace ptkit::time {

class TimeSurvey::Impl {
 public:
  Impl(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
       std::span<const trace::KnownLoss> losses)
      : own_(std::make_unique<Timeline>(stream, losses, errata, calibrate(stream, losses, clock, errata))),
        line_(*own_) {}

  explicit Impl(TimeTrack track) : track_(std::move(track)), line_(track_->timeline()) {}

  // The `tsc` of an answer is the lower limit of a point within the query, or of an earlier answer.
  Limits read_to(std::uint64_t end) {
    Limits limits{known_, last_low_, most_, last_least_, false};
    for (;;) {
      take_points(end, limits);
      if (line_.is_past(end) || !line_.read_frame()) break;
    }
    // After the last point the upper limit at the end of the stream counts.
    if (line_.is_past(kUnknown)) {
      limits.least_low = std::min(limits.least_low, line_.tail());
      limits.go_back = limits.go_back || line_.tail() < most_;
    }
    limits.most_tsc = most_;
    return limits;
  }

  [[nodiscard]] std::vector<std::uint8_t> state_at(std::uint64_t psb) const {
    return line_.state_bytes_at(psb);
  }

  [[nodiscard]] bool needs_all_queries() const noexcept { return line_.model().long_tnt; }

 private:
  // Adds points up to `end` to the limits. The timeline reads points frame by frame, and drops points that no
  // query needs any more.
  void take_points(std::uint64_t end, Limits& limits) {
    const History& points = line_.history();
    for (std::size_t i = taken_ - std::min(taken_, line_.forgotten()); i < points.size(); ++i) {
      if (points.extent(i).first > end) return;
      const std::uint64_t low = points.low(i);
      const std::uint64_t least = std::min({low, points.high(i), points.high_before(i)});
      limits.least_tsc = limits.any ? std::min(limits.least_tsc, low) : low;
      limits.least_low = limits.any ? std::min(limits.least_low, least) : least;
      limits.go_back = limits.go_back || least < most_;
      limits.any = known_ = true;
      most_ = std::max(most_, low);
      last_low_ = low;
      last_least_ = least;
      taken_ = line_.forgotten() + i + 1;
    }
  }

  std::unique_ptr<Timeline> own_;  // or that of track_
  std::optional<TimeTrack> track_;
  Timeline& line_;
  std::size_t taken_ = 0;  // number of points that were added
  bool known_ = false;
  std::uint64_t most_ = 0;  // largest lower limit so far
  std::uint64_t last_low_ = 0;
  std::uint64_t last_least_ = 0;
};

TimeSurvey::TimeSurvey(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
                       std::span<const trace::KnownLoss> losses)
    : impl_(std::make_unique<Impl>(stream, clock, errata, losses)) {}
TimeSurvey::TimeSurvey(TimeTrack track) : impl_(std::make_unique<Impl>(std::move(track))) {}
TimeSurvey::~TimeSurvey() = default;

TimeSurvey::Limits TimeSurvey::read_to(std::uint64_t end) { return impl_->read_to(end); }

std::vector<std::uint8_t> TimeSurvey::state_at(std::uint64_t psb) const { return impl_->state_at(psb); }

bool TimeSurvey::needs_all_queries() const noexcept { return impl_->needs_all_queries(); }

}  // namespace ptkit::time
