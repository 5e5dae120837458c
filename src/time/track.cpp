#include "time/track.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "packet/scan.h"
#include "time/calibrate.h"
#include "time/point_estimate.h"
#include "time/record_track.h"
#include "time/timeline.h"

namespace ptkit::time {
namespace {

constexpr std::uint32_t kMaxError = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kLook = std::uint64_t{1}
                                << 18U;  // bytes; most streams have a TSC in their first PSB+

// A stream without a TSC has no known times, so its packets need not be read. Returns true if bytes are
// missing, because the count after a loss differs from what FrameReader reads.
bool may_have_times(base::Bytes stream, const packet::Errata& errata, bool losses) noexcept {
  packet::PacketCounter counter(stream, true, errata);
  const auto& packets = counter.counts().packets;
  const auto tsc = static_cast<std::size_t>(packet::PacketKind::TSC);
  while (!losses && packets[tsc] == 0 && counter.run(kLook)) {
  }
  return losses || packets[tsc] != 0;
}

}  // namespace

class TimeTrack::Impl {
 public:
  Impl(base::Bytes stream, const ClockModel& model, const packet::Errata& errata,
       std::span<const trace::KnownLoss> losses)
      : losses_(std::make_shared<const Losses>(losses.begin(), losses.end())),
        line_(stream, *losses_, errata, model) {}

  Impl(const Impl& like, const Timeline::State& state) : losses_(like.losses_), line_(like.line_, state) {}
  Impl(const Impl& like, std::uint64_t psb, const CarriedTime& carried)
      : losses_(like.losses_), line_(like.line_, psb, carried) {}

  [[nodiscard]] Timeline& timeline() noexcept { return line_; }
  [[nodiscard]] const Timeline& timeline() const noexcept { return line_; }

  [[nodiscard]] std::unique_ptr<Impl> from(base::Bytes bytes) const {
    base::FieldReader fields(bytes);
    Timeline::State state = line_.blank_state();
    if (!state.describe(fields) || !fields.good() || !fields.rest().empty()) return nullptr;
    return std::make_unique<Impl>(*this, state);
  }

  void at(std::span<const TimeQuery> queries, TimeRange* out) {
    for (;;) {
      const std::size_t done = at_known(queries, out);
      if (done == queries.size()) return;
      out[done] = at(queries[done]);
      out += done + 1;
      queries = queries.subspan(done + 1);
    }
  }

  TimeRange at(const TimeQuery& asked) {
    if (asked == last_) return last_range_;
    last_ = asked;
    last_range_ = find(asked.since, std::max(asked.since, asked.packet()), asked.before_first_bit());
    return last_range_;
  }

  void not_before(std::uint64_t tsc) noexcept {
    newest_low_ = std::max(newest_low_, tsc);
    any_known_ = any_known_ || tsc != 0;
  }

  [[nodiscard]] bool cyc_times_first_bits() const noexcept {
    return line_.model().tnt_time == TntTime::FIRST_BRANCH;
  }

  TimePoints points(const TimeQuery& asked) {
    std::uint64_t since = asked.since;
    const std::uint64_t offset = std::max(since, asked.packet());
    TimePoints out;
    out.at_before = out.at_after = since == offset;
    read_past(since);
    if (since < line_.first_psb() && offset >= line_.first_psb()) since = line_.first_psb();
    const History& known = line_.history();
    if (!known.empty() && known.first_offset() <= since) {
      low_hint_ = known.seek(low_hint_, since);
      out.before = point(low_hint_);
      out.at_before = out.at_before && since <= known.extent(low_hint_).last;
    }
    read_past(offset);
    find_after(offset, asked.before_first_bit(), out);
    return out;
  }

  TimePoint numbered(std::uint64_t number) const noexcept {
    if (number < line_.forgotten() || number - line_.forgotten() >= line_.history().size()) return {};
    return point(static_cast<std::size_t>(number - line_.forgotten()));
  }

  std::uint64_t all_before_until(std::uint64_t offset, std::uint64_t tsc) {
    constexpr std::uint64_t kFar = std::uint64_t{1} << 14U;  // bytes; larger results are seldom certain
    read_past(offset);
    keep_hints([&] { line_.read_on(offset, offset + kFar); });
    const History& known = line_.history();
    if (known.empty() || offset < known.first_offset()) {
      if (any_known_) return offset;
      return known.empty() ? kUnknown : known.first_offset();  // no time is known before the first point
    }
    const auto quiet = [&](std::uint64_t high, std::uint64_t low) { return high < tsc && high >= low; };
    std::uint64_t newest = newest_low_;
    for (std::size_t i = high_hint_ = known.seek(high_hint_, offset); i + 1 < known.size(); ++i) {
      const std::uint64_t low = known.low(i);
      const std::uint64_t end = known.extent(i + 1).first;
      if (low < newest || !quiet(known.high(i), low) || !quiet(known.high_before(i + 1), low)) return offset;
      newest = low;
      offset = end;
    }
    return offset;
  }

 private:
  // Answers the first queries, with the results of find(), as long as they are between known points. Returns
  // their number.
  std::size_t at_known(std::span<const TimeQuery> queries, TimeRange* out) noexcept {
    const History& known = line_.history();
    if (known.size() < 2 || !any_known_ || line_.model().long_tnt) return 0;
    const std::uint64_t begin = known.first_offset();
    const std::uint64_t end = known.last_offset();
    std::size_t since_at = low_hint_;
    std::size_t offset_at = high_hint_;
    std::uint64_t newest = newest_low_;
    TimeQuery last = last_;
    std::uint64_t previous_offset = kUnknown;  // the offset that offset_at belongs to
    std::size_t done = 0;
    for (; done < queries.size(); ++done) {
      // Where CYC packets give the time of each packet, almost all queries go from point to point.
      const std::size_t steps =
          queries[done].since != previous_offset
              ? 0
              : known.answer_steps(offset_at, previous_offset, newest, queries.subspan(done), out + done);
      if (steps > 0) {
        since_at = offset_at + steps - 1;
        offset_at += steps;
        newest = known.low(since_at);
        done += steps;
        last = queries[done - 1];
        previous_offset = last.offset;
        if (done == queries.size()) break;
      }
      const TimeQuery asked = queries[done];
      const std::uint64_t offset = asked.packet();
      if (asked == last) {
        out[done] = done == 0 ? last_range_ : out[done - 1];
        continue;
      }
      if (asked.since > offset || asked.since < begin || offset >= end) break;
      since_at = asked.since == previous_offset ? offset_at : known.seek(since_at, asked.since);
      offset_at = asked.since == offset ? since_at : known.seek(offset_at, offset);
      last = asked;
      previous_offset = offset;
      std::uint64_t low = known.low(since_at);
      Rank rank = known.info(since_at).rank;
      const std::uint64_t high = high_at(offset_at, offset, asked.before_first_bit(), low, rank);
      // Stores each field: copying the struct would stall on store forwarding.
      out[done].error = error_of(low, high, newest);
      out[done].tsc = newest;
      out[done].source = source_of(rank);
      out[done].known = true;
      if (offset > known.extent(offset_at).last && !asked.before_first_bit() && high >= newest) {
        const std::size_t same = count_same(known, queries.subspan(done + 1), since_at, offset_at);
        std::fill_n(out + done + 1, same, TimeRange{newest, out[done].error, source_of(rank), true});
        done += same;
        last = queries[done];
        previous_offset = last.offset;
      }
    }
    low_hint_ = since_at;
    high_hint_ = offset_at;
    newest_low_ = newest;
    last_ = last;
    if (done > 0) last_range_ = out[done - 1];
    return done;
  }

  // Number of first queries that are between the same points as a query with its offset after point
  // `offset_at`.
  static std::size_t count_same(const History& known, std::span<const TimeQuery> queries,
                                std::size_t since_at, std::size_t offset_at) noexcept {
    const std::uint64_t since_begin = known.extent(since_at).first;
    const std::uint64_t since_end = known.extent(since_at + 1).first;
    const std::uint64_t offset_begin = std::max(known.extent(offset_at).last + 1, since_begin);
    const std::uint64_t offset_end = known.extent(offset_at + 1).first;
    std::size_t count = 0;
    for (; count < queries.size(); ++count) {
      const TimeQuery& asked = queries[count];
      if (asked.since < since_begin || asked.since >= since_end || asked.offset < offset_begin ||
          asked.offset >= offset_end || asked.since > asked.offset) {
        break;
      }
    }
    return count;
  }

  TimeRange find(std::uint64_t since, std::uint64_t offset, bool before_first_bit) {
    read_past(since);
    std::uint64_t low = 0;
    Rank rank = Rank::NONE;
    if (!find_low(since, offset, low, rank)) {
      if (!any_known_) return {};
      low = newest_low_;
    }
    if (line_.model().long_tnt) low = low_of_group(since, offset, low);
    read_past(offset);
    const std::uint64_t high = find_high(offset, before_first_bit, low, rank);
    return answer(low, high, rank);
  }

  TimeRange answer(std::uint64_t low, std::uint64_t high, Rank rank) noexcept {
    any_known_ = true;
    const std::uint32_t error = error_of(low, high, newest_low_);
    return {newest_low_, error, source_of(rank), true};
  }

  // Time never goes back: `newest` is the lower limit of the previous answer, and becomes that of this one.
  static std::uint32_t error_of(std::uint64_t low, std::uint64_t high, std::uint64_t& newest) noexcept {
    const bool went_back = high < newest;  // the TSC itself went back: nothing is certain
    newest = std::max(newest, low);
    if (went_back || high == kUnknown) return kMaxError;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max(high, newest) - newest, kMaxError));
  }

  // A processor may emit a buffer of up to 47 branches as several short TNT packets at once. A TNT packet
  // right after another one may then have branches that are older than that packet.
  std::uint64_t low_of_group(std::uint64_t since, std::uint64_t offset, std::uint64_t low) noexcept {
    constexpr std::uint64_t kShort = 1;  // bytes of TNT-8
    constexpr std::uint64_t kLong = 8;   // of TNT-64
    const std::uint64_t distance = offset - since;
    if (since == group_since_) {
      if (offset == group_end_) return group_low_;  // other branches of the same packet
      return std::min(low, group_low_);             // direct branches that may be older than that packet
    }
    if (since == group_end_ && (distance == kShort || distance == kLong)) low = std::min(low, group_low_);
    group_since_ = since;
    group_end_ = offset;
    group_low_ = low;
    return low;
  }

  bool find_low(std::uint64_t since, std::uint64_t offset, std::uint64_t& low, Rank& rank) {
    const History& known = line_.history();
    if (known.empty()) return false;
    // No time is known before the first PSB.
    if (since < line_.first_psb() && offset >= line_.first_psb()) since = line_.first_psb();
    if (known.first_offset() > since) return false;
    low_hint_ = known.seek(low_hint_, since);
    low = known.low(low_hint_);
    rank = known.info(low_hint_).rank;
    return true;
  }

  std::uint64_t find_high(std::uint64_t offset, bool before_first_bit, std::uint64_t& low, Rank& rank) {
    const History& known = line_.history();
    if (known.first_offset() > offset) return high_before(0, rank);
    high_hint_ = known.seek(high_hint_, offset);
    return high_at(high_hint_, offset, before_first_bit, low, rank);
  }

  // `at`: the last point that begins at or before `offset`.
  std::uint64_t high_at(std::size_t at, std::uint64_t offset, bool before_first_bit, std::uint64_t& low,
                        Rank& rank) const noexcept {
    const History& known = line_.history();
    const History::Info info = known.info(at);
    const bool before_tnt = (info.flags & History::BEFORE_TNT) != 0;
    const bool first = cyc_times_first_bits();
    if (offset <= known.extent(at).last && (!before_tnt || (first && before_first_bit))) {
      rank = std::max(rank, info.rank);
      return known.high(at);
    }
    // In hardware, the CYC packet right before a TNT packet gives the time of the first bit: that branch and
    // later rows are not older. Direct branches before it are. Other packets do not count: TNT bits may be
    // older than a preceding CBR packet.
    if (first && before_tnt && !before_first_bit) low = std::max(low, known.low(at));
    return high_before(at + 1, rank);
  }

  std::uint64_t high_before(std::size_t next, Rank& rank) const noexcept {
    const History& known = line_.history();
    if (next >= known.size()) return line_.tail();
    rank = std::max(rank, known.info(next).rank);
    return known.high_before(next);
  }

  [[nodiscard]] TimePoint point(std::size_t index) const noexcept {
    const History& known = line_.history();
    const bool cycles = (known.info(index).flags & History::CYCLES) != 0;
    const ClockModel& model = line_.model();
    const double mtc_ticks = model.mtc_usable ? model.edge_ticks() : 0;
    return {line_.forgotten() + index, known.low(index), estimate_time(known, index, mtc_ticks), cycles};
  }

  // The point that limits the time from above, as high_at() finds it.
  void find_after(std::uint64_t offset, bool before_first_bit, TimePoints& out) {
    const History& known = line_.history();
    std::size_t next = 0;
    if (!known.empty() && known.first_offset() <= offset) {
      const std::size_t at = high_hint_ = known.seek(high_hint_, offset);
      const History::Info info = known.info(at);
      const bool at_once = offset <= known.extent(at).last;
      const bool before_tnt = (info.flags & History::BEFORE_TNT) != 0;
      const bool first = cyc_times_first_bits();
      if (at_once && (!before_tnt || (first && before_first_bit))) {
        out.after = point(at);
        out.at_after = !before_tnt;
        return;
      }
      if (first && before_tnt && !before_first_bit) {
        out.before = point(at);
        out.at_before = at_once;
      }
      next = at + 1;
    }
    out.at_after = false;
    if (next < known.size() && (known.info(next).flags & History::BACK) == 0) out.after = point(next);
  }

  void read_past(std::uint64_t offset) {
    if (line_.is_past(offset)) return;
    keep_hints([&] { line_.read_past(offset); });
  }

  // Adjusts the hints when points are dropped.
  template <typename Read>
  void keep_hints(Read read) {
    const std::size_t before = line_.forgotten();
    read();
    const std::size_t gone = line_.forgotten() - before;
    low_hint_ -= std::min(low_hint_, gone);
    high_hint_ -= std::min(high_hint_, gone);
  }

  using Losses = std::vector<trace::KnownLoss>;
  std::shared_ptr<const Losses> losses_;  // shared with tracks from from()
  Timeline line_;
  std::size_t low_hint_ = 0;
  std::size_t high_hint_ = 0;

  std::uint64_t newest_low_ = 0;
  bool any_known_ = false;
  TimeQuery last_{kUnknown, kUnknown};
  TimeRange last_range_;
  std::uint64_t group_since_ = kUnknown;
  std::uint64_t group_end_ = kUnknown;  // the last query, and the lower limit of its branches
  std::uint64_t group_low_ = 0;
};

TimeTrack::TimeTrack(base::Bytes stream, const trace::Clock& clock, const packet::Errata& errata,
                     std::span<const trace::KnownLoss> losses)
    : TimeTrack(nullptr) {
  if (!may_have_times(stream, errata, !losses.empty())) stream = {};
  impl_ = std::make_unique<Impl>(stream, calibrate(stream, losses, clock, errata), errata, losses);
}
TimeTrack::TimeTrack(base::Bytes stream, const ClockModel& model, const packet::Errata& errata,
                     std::span<const trace::KnownLoss> losses)
    : impl_(std::make_unique<Impl>(stream, model, errata, losses)) {}
TimeTrack::TimeTrack(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
TimeTrack TimeTrack::of_records(base::Bytes records) {
  TimeTrack track(nullptr);
  track.records_ = std::make_unique<RecordTrack>(records);
  return track;
}
TimeTrack::~TimeTrack() = default;
TimeTrack::TimeTrack(TimeTrack&&) noexcept = default;
TimeTrack& TimeTrack::operator=(TimeTrack&&) noexcept = default;

TimeRange TimeTrack::at(const TimeQuery& query) {
  return records_ != nullptr ? records_->at(query.packet()) : impl_->at(query);
}

void TimeTrack::at(std::span<const TimeQuery> queries, TimeRange* out) {
  if (records_ == nullptr) return impl_->at(queries, out);
  for (const TimeQuery& asked : queries) *out++ = records_->at(asked.packet());
}

void TimeTrack::not_before(std::uint64_t tsc) noexcept { impl_->not_before(tsc); }

Timeline& TimeTrack::timeline() noexcept { return impl_->timeline(); }

bool TimeTrack::cyc_times_first_bits() const noexcept {
  return impl_ != nullptr && impl_->cyc_times_first_bits();
}
TimePoints TimeTrack::points(const TimeQuery& asked) {
  return records_ != nullptr ? TimePoints{} : impl_->points(asked);
}

TimePoint TimeTrack::point(std::uint64_t number) const {
  return records_ != nullptr ? TimePoint{} : impl_->numbered(number);
}

std::uint64_t TimeTrack::all_before_until(std::uint64_t offset, std::uint64_t tsc) {
  return records_ != nullptr ? offset : impl_->all_before_until(offset, tsc);
}

std::optional<TimeTrack> TimeTrack::from(base::Bytes state) const {
  if (impl_ == nullptr) return std::nullopt;
  std::unique_ptr<Impl> impl = impl_->from(state);
  if (impl == nullptr) return std::nullopt;
  return TimeTrack(std::move(impl));
}

TimeTrack TimeTrack::begin_at(std::uint64_t psb, const CarriedTime& carried) const {
  return TimeTrack(std::make_unique<Impl>(*impl_, psb, carried));
}

std::vector<std::uint8_t> TimeTrack::state_at(std::uint64_t psb) const {
  return std::as_const(*impl_).timeline().state_bytes_at(psb);
}

CarriedTime TimeTrack::carried() const noexcept { return std::as_const(*impl_).timeline().carried(); }

}  // namespace ptkit::time
