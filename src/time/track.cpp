#include "time/track.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "time/calibrate.h"
#include "time/cycles.h"
#include "time/mtc.h"
#include "time/reader.h"

namespace ptkit::time {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxError = std::numeric_limits<std::uint32_t>::max();
// Points that are kept, if no PSB tells that they are no longer asked for.
constexpr std::size_t kMaxHistory = std::size_t{1} << 19;

// A point of which all is known that ever will be.
struct Known {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t low = 0;
  std::uint64_t high = 0;         // kUnknown: no limit
  std::uint64_t high_before = 0;  // of what precedes the point
  TimeSource source = TimeSource::NONE;
  bool cycles = false;
  bool before_tnt = false;
};

int rank(TimeSource source) noexcept {
  constexpr std::array<int, 5> kRanks = {0, 2, 3, 4, 1};  // NONE, TSC, MTC, CYC, CBR
  return kRanks[static_cast<std::size_t>(source)];
}
TimeSource better(TimeSource a, TimeSource b) noexcept { return rank(a) >= rank(b) ? a : b; }

std::uint64_t add_floor(std::uint64_t origin, double ticks) noexcept {
  return origin + static_cast<std::uint64_t>(std::max(0.0, std::floor(ticks)));
}
std::uint64_t add_ceil(std::uint64_t origin, double ticks) noexcept {
  constexpr double kFar = 9e18;
  if (!(ticks < kFar)) return kUnknown;
  const auto more = static_cast<std::uint64_t>(std::max(0.0, std::ceil(ticks)));
  return origin > kUnknown - more ? kUnknown : origin + more;
}

}  // namespace

// Errata need little here: SKD007 and SKZ84 are the packet decoder's business; cycles lost to SKL168 keep
// both limits true, and a TMA that contradicts its neighbours is not used, on any CPU.
class TimeTrack::Impl {
 public:
  Impl(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
       std::span<const trace::KnownLoss> losses)
      : losses_(losses.begin(), losses.end()),
        reader_(stream, losses_, errata),
        model_(calibrate(stream, losses_, clock, errata)) {
    reader_.set_tnt_time(model_.tnt_time);
  }

  TimeRange at(std::uint64_t since, std::uint64_t offset) {
    if (since == last_since_ && offset == last_offset_) return last_range_;
    last_since_ = since;
    last_offset_ = offset;
    last_range_ = find(since, std::max(since, offset));
    return last_range_;
  }

 private:
  // The opening of the next frame.
  struct Opening {
    std::uint64_t origin = 0;
    double low = 0;
    double high = 0;
    CtcReference reference;
    double cyc_low = -kNoLimit;  // of the last CYC before
  };

  TimeRange find(std::uint64_t since, std::uint64_t offset) {
    read_past(since);
    std::uint64_t low = 0;
    TimeSource source = TimeSource::NONE;
    if (!find_low(since, offset, low, source)) {
      if (!any_known_) return {};
      low = newest_low_;
    }
    if (model_.long_tnt) low = low_of_group(since, offset, low);
    read_past(offset);
    const std::uint64_t high = find_high(offset, low, source);
    const bool went_back = high < newest_low_;  // the TSC itself did: nothing is certain
    newest_low_ = any_known_ ? std::max(newest_low_, low) : low;
    any_known_ = true;
    const std::uint64_t error =
        went_back || high == kUnknown ? kMaxError : std::max(high, newest_low_) - newest_low_;
    return {newest_low_, static_cast<std::uint32_t>(std::min(error, kMaxError)), source, true};
  }

  // A buffer of up to 47 branches may be written as several short TNT packets at once: then one that directly
  // follows another may hold branches that are older than that packet.
  std::uint64_t low_of_group(std::uint64_t since, std::uint64_t offset, std::uint64_t low) noexcept {
    constexpr std::uint64_t kShort = 1;  // bytes of TNT-8
    constexpr std::uint64_t kLong = 8;   // of TNT-64
    const std::uint64_t distance = offset - since;
    if (since == group_end_ && (distance == kShort || distance == kLong)) low = std::min(low, group_low_);
    group_end_ = offset;
    group_low_ = low;
    return low;
  }

  bool find_low(std::uint64_t since, std::uint64_t offset, std::uint64_t& low, TimeSource& source) {
    if (known_.empty()) return false;
    // Nothing is seen before the first PSB.
    if (since < reader_.first_psb() && offset >= reader_.first_psb()) since = reader_.first_psb();
    if (known_.front().first > since) return false;
    low_hint_ = seek(low_hint_, since);
    low = known_[low_hint_].low;
    source = known_[low_hint_].source;
    return true;
  }

  std::uint64_t find_high(std::uint64_t offset, std::uint64_t& low, TimeSource& source) {
    std::size_t next = 0;
    if (known_.front().first <= offset) {
      high_hint_ = seek(high_hint_, offset);
      const Known& at = known_[high_hint_];
      next = high_hint_ + 1;
      const bool inside = offset <= at.last;
      if (inside && !at.before_tnt) {
        source = better(source, at.source);
        return at.high;
      }
      // In hardware the branches of a TNT packet happened after the CYC packet that precedes it.
      if (at.cycles && model_.tnt_time == TntTime::FIRST_BRANCH) low = std::max(low, at.low);
    }
    if (next >= known_.size()) return tail_;
    source = better(source, known_[next].source);
    return known_[next].high_before;
  }

  // Index of the last point that begins at or before `offset`; the first point does.
  std::size_t seek(std::size_t hint, std::uint64_t offset) const {
    constexpr std::size_t kNear = 16;
    hint = std::min(hint, known_.size() - 1);
    for (std::size_t i = 0; i < kNear; ++i) {
      if (known_[hint].first > offset) {
        --hint;
      } else if (hint + 1 < known_.size() && known_[hint + 1].first <= offset) {
        ++hint;
      } else {
        return hint;
      }
    }
    const auto behind =
        std::upper_bound(known_.begin(), known_.end(), offset,
                         [](std::uint64_t at, const Known& point) { return at < point.first; });
    return static_cast<std::size_t>(behind - known_.begin()) - 1;
  }

  // Until a point behind `offset` is known, or the stream ends.
  void read_past(std::uint64_t offset) {
    while (!ended_ && (known_.empty() || known_.back().first <= offset)) {
      if (!reader_.next(frame_)) {
        ended_ = true;
        return;
      }
      forget();
      resolve();
    }
  }

  void resolve() {
    const bool back = frame_.opened && frame_.end == FrameEnd::TSC && frame_.end_tsc < opening_.origin;
    double end = kNoLimit;
    if (frame_.end == FrameEnd::TSC && !back) end = static_cast<double>(frame_.end_tsc - opening_.origin);
    if (frame_.opened) {
      resolve_points(end, back);
      keep_points(back);
    } else if (frame_.end == FrameEnd::TSC) {
      frame_.points.back().source = TimeSource::TSC;
      keep(frame_.points.back(), frame_.end_tsc, kUnknown);
    }
    open_next(end);
  }

  void resolve_points(double end, bool back) {
    std::vector<Point>& points = frame_.points;
    points.front().low = opening_.low;
    points.front().high = opening_.high;
    if (frame_.end == FrameEnd::TSC) {
      points.back().low = points.back().high = back ? 0 : end;
      points.back().usable = !back;
    }
    const MtcBounds bounds{opening_.low, end, opening_.reference,
                           end < kNoLimit ? reference_of(frame_.end_tma, end, model_) : CtcReference{},
                           wraps_seen_};
    const MtcResult mtc = resolve_mtc(points, bounds, model_);
    wraps_seen_ = wraps_seen_ || mtc.wrapped;
    resolve_cycles(points, model_, frame_.next_ratio, opening_.cyc_low);
    if (frame_.end != FrameEnd::STREAM) return;
    const double limit = mtc.usable ? tail_limit(points, model_, frame_.lost_at_end) : kNoLimit;
    tail_ = add_ceil(opening_.origin, limit);
    for (Point& point : points) point.high = std::min(point.high, std::max(limit, point.low));
  }

  void keep_points(bool back) {
    for (std::size_t i = 1; i < frame_.points.size(); ++i) {
      Point& point = frame_.points[i];
      if (back && i + 1 == frame_.points.size()) {
        point.source = TimeSource::TSC;
        point.low = point.high = 0;
        keep(point, frame_.end_tsc, kUnknown);
      } else if (point.usable) {
        keep(point, opening_.origin, add_ceil(opening_.origin, point.high));
      }
    }
  }

  void keep(const Point& point, std::uint64_t origin, std::uint64_t high_before) {
    known_.push_back({point.first, point.last, add_floor(origin, point.low), add_ceil(origin, point.high),
                      high_before, point.source, point.kind == PointKind::CYC, point.before_tnt});
  }

  void open_next(double end) {
    Opening next;
    double shift = end;
    if (frame_.end == FrameEnd::TSC) {
      next.origin = frame_.end_tsc;
      next.reference = reference_of(frame_.end_tma, 0, model_);
    } else if (frame_.end == FrameEnd::CUT && frame_.opened) {
      const Point& last = frame_.points.back();
      shift = std::floor(last.low);
      next.origin = add_floor(opening_.origin, shift);
      next.low = last.low - shift;
      next.high = last.high - shift;
    }
    if (!next.reference.known && frame_.opened && shift < kNoLimit)
      next.reference = reference_of_last_mtc(shift);
    if (frame_.opened && shift < kNoLimit) next.cyc_low = low_of_last_cyc() - shift;
    opening_ = next;
  }

  double low_of_last_cyc() const {
    for (std::size_t i = frame_.points.size(); i-- > 0;) {
      if (frame_.points[i].kind == PointKind::CYC) return frame_.points[i].low;
    }
    return opening_.cyc_low;
  }

  CtcReference reference_of_last_mtc(double shift) const {
    for (std::size_t i = frame_.points.size(); i-- > 0;) {
      const Point& point = frame_.points[i];
      if (point.kind != PointKind::MTC || !point.usable) continue;
      if (point.high - point.low > 4 || !model_.mtc_usable) break;
      return {true, point.value << model_.mtc_period, (point.low + point.high) / 2 - shift,
              model_.mtc_period + 8};
    }
    return {};
  }

  // Drops points that are no longer asked for: of all PSB intervals but the last ones.
  void forget() {
    if (frame_.psb != psbs_.back()) {
      std::rotate(psbs_.begin(), psbs_.begin() + 1, psbs_.end());
      psbs_.back() = frame_.psb;
    }
    const auto needed =
        std::lower_bound(known_.begin(), known_.end(), psbs_.front(),
                         [](const Known& point, std::uint64_t at) { return point.first < at; });
    auto count = static_cast<std::size_t>(needed - known_.begin());
    if (known_.size() > kMaxHistory) count = std::max(count, known_.size() - kMaxHistory / 2);
    count = count == 0 ? 0 : count - 1;  // the one before bounds from below
    if (count < 1024 || count * 2 < known_.size()) return;
    known_.erase(known_.begin(), known_.begin() + static_cast<std::ptrdiff_t>(count));
    low_hint_ -= std::min(low_hint_, count);
    high_hint_ -= std::min(high_hint_, count);
  }

  std::vector<trace::KnownLoss> losses_;
  FrameReader reader_;
  ClockModel model_;
  Frame frame_;
  Opening opening_;
  std::vector<Known> known_;  // by offset
  std::array<std::uint64_t, 4> psbs_{};
  std::uint64_t tail_ = kUnknown;
  std::size_t low_hint_ = 0;
  std::size_t high_hint_ = 0;
  bool ended_ = false;
  bool wraps_seen_ = false;

  std::uint64_t newest_low_ = 0;
  bool any_known_ = false;
  std::uint64_t last_since_ = kUnknown;
  std::uint64_t last_offset_ = kUnknown;
  TimeRange last_range_;
  std::uint64_t group_end_ = kUnknown;  // the last packet asked for, and the lower limit of its branches
  std::uint64_t group_low_ = 0;
};

TimeTrack::TimeTrack(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
                     std::span<const trace::KnownLoss> losses)
    : impl_(std::make_unique<Impl>(stream, clock, errata, losses)) {}
TimeTrack::~TimeTrack() = default;
TimeTrack::TimeTrack(TimeTrack&&) noexcept = default;
TimeTrack& TimeTrack::operator=(TimeTrack&&) noexcept = default;

TimeRange TimeTrack::at(std::uint64_t since, std::uint64_t offset) { return impl_->at(since, offset); }

void TimeTrack::at(std::span<const Question> questions, TimeRange* out) {
  for (const Question& question : questions) *out++ = impl_->at(question.since, question.offset);
}

}  // namespace ptkit::time
