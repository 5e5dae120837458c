#include "time/track.h"

#include <algorithm>
#include <vector>

#include "time/calibrate.h"
#include "time/timeline.h"

namespace ptkit::time {
namespace {

constexpr std::uint64_t kMaxError = std::numeric_limits<std::uint32_t>::max();

}  // namespace

class TimeTrack::Impl {
 public:
  Impl(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
       std::span<const trace::KnownLoss> losses)
      : losses_(losses.begin(), losses.end()),
        line_(stream, losses_, errata, calibrate(stream, losses_, clock, errata)) {}

  TimeRange at(std::uint64_t since, std::uint64_t offset) {
    if (since == last_since_ && offset == last_offset_) return last_range_;
    last_since_ = since;
    last_offset_ = offset;
    last_range_ = find(since, std::max(since, offset));
    return last_range_;
  }

 private:
  TimeRange find(std::uint64_t since, std::uint64_t offset) {
    read_past(since);
    std::uint64_t low = 0;
    Rank rank = Rank::NONE;
    if (!find_low(since, offset, low, rank)) {
      if (!any_known_) return {};
      low = newest_low_;
    }
    if (line_.model().long_tnt) low = low_of_group(since, offset, low);
    read_past(offset);
    const std::uint64_t high = find_high(offset, low, rank);
    return answer(low, high, rank);
  }

  TimeRange answer(std::uint64_t low, std::uint64_t high, Rank rank) noexcept {
    const bool went_back = high < newest_low_;  // the TSC itself did: nothing is certain
    newest_low_ = any_known_ ? std::max(newest_low_, low) : low;
    any_known_ = true;
    const std::uint64_t error =
        went_back || high == kUnknown ? kMaxError : std::max(high, newest_low_) - newest_low_;
    return {newest_low_, static_cast<std::uint32_t>(std::min(error, kMaxError)), source_of(rank), true};
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

  bool find_low(std::uint64_t since, std::uint64_t offset, std::uint64_t& low, Rank& rank) {
    const History& known = line_.history();
    if (known.empty()) return false;
    // Nothing is seen before the first PSB.
    if (since < line_.first_psb() && offset >= line_.first_psb()) since = line_.first_psb();
    if (known.first_offset() > since) return false;
    low_hint_ = known.seek(low_hint_, since);
    low = known.low(low_hint_);
    rank = known.info(low_hint_).rank;
    return true;
  }

  std::uint64_t find_high(std::uint64_t offset, std::uint64_t& low, Rank& rank) {
    const History& known = line_.history();
    std::size_t next = 0;
    if (known.first_offset() <= offset) {
      high_hint_ = known.seek(high_hint_, offset);
      const History::Info at = known.info(high_hint_);
      next = high_hint_ + 1;
      const bool inside = offset <= known.place(high_hint_).last;
      if (inside && (at.flags & History::BEFORE_TNT) == 0) {
        rank = std::max(rank, at.rank);
        return known.high(high_hint_);
      }
      // In hardware the branches of a TNT packet happened after the CYC packet that precedes it.
      if ((at.flags & History::CYCLES) != 0 && line_.model().tnt_time == TntTime::FIRST_BRANCH) {
        low = std::max(low, known.low(high_hint_));
      }
    }
    if (next >= known.size()) return line_.tail();
    rank = std::max(rank, known.info(next).rank);
    return known.high_before(next);
  }

  void read_past(std::uint64_t offset) {
    if (line_.is_past(offset)) return;
    const std::size_t before = line_.forgotten();
    line_.read_past(offset);
    const std::size_t gone = line_.forgotten() - before;
    low_hint_ -= std::min(low_hint_, gone);
    high_hint_ -= std::min(high_hint_, gone);
  }

  std::vector<trace::KnownLoss> losses_;
  Timeline line_;
  std::size_t low_hint_ = 0;
  std::size_t high_hint_ = 0;

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
