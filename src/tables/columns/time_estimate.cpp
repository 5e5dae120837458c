#include "tables/columns/time_estimate.h"

#include <algorithm>
#include <cmath>

#include "tables/columns/span_times.h"

namespace ptkit::tables::columns {
namespace {

using time::TimePoint;
using time::TimePoints;

}  // namespace

std::uint64_t* estimate_cells(Batch& batch) noexcept {
  switch (batch.table()) {
    case TableId::branches:
      return batch.cells<Column::branches_tsc_estimate>();
    case TableId::blocks:
      return batch.cells<Column::blocks_tsc_estimate>();
    case TableId::instructions:
      return batch.cells<Column::instructions_tsc_estimate>();
    case TableId::events:
      return batch.cells<Column::events_tsc_estimate>();
    default:
      return nullptr;
  }
}

bool wants_estimate(TableId table, ColumnMask mask) noexcept {
  const auto columns = columns_of(table);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == "tsc_estimate") return ((mask >> i) & 1) != 0;
  }
  return false;
}

void TimeKnots::pass(flow::StreamSpan span, std::uint64_t retired) {
  const auto now = static_cast<double>(retired);
  if (span != span_) {
    span_ = span;
    const TimePoints points = track_->points(query_of(span));
    if (points.before.number != stretch_.before.number || points.after.number != stretch_.after.number) {
      close_stretch();
      cross(points, now);
    }
    stretch_ = points;
  }
  retired_ = now;
}

void TimeKnots::close_stretch() {
  const TimePoint& after = stretch_.after;
  if (!after.is_known()) return;
  while (!uppers_.empty() && uppers_.back().point.number >= after.number) uppers_.pop_back();
  uppers_.push_back({after, retired_, stretch_.at_after});
}

// Rows from row `first` on are after `next.before`. The points in between are between that row and the last
// row before them.
void TimeKnots::cross(const TimePoints& next, double first) {
  const TimePoint& low = next.before;
  if (!low.is_known() || low.number == stretch_.before.number) return;
  if (uppers_.empty() || uppers_.front().point.number > low.number) {
    const double from = any_ ? last_.at.retired : first;
    return add({low.number, knot_at(next.at_before ? first : (from + first) / 2, low)});
  }
  Upper upper;
  while (!uppers_.empty() && uppers_.front().point.number <= low.number) {
    upper = uppers_.front();
    uppers_.pop_front();
  }
  const double middle = (upper.retired + first) / 2;
  const bool stood = upper.retired == first && !pauses_.empty();
  if (upper.point.number != low.number) {
    add({upper.point.number, knot_at(upper.exact ? upper.retired : middle, upper.point), false, true});
    return add({low.number, knot_at(next.at_before ? first : middle, low), true, false});
  }
  const double at = next.at_before ? first : upper.exact ? upper.retired : middle;
  add({low.number, knot_at(at, low), stood, stood});
}

TimeKnots::Knot TimeKnots::knot_at(double retired, const TimePoint& point) {
  if (!any_) origin_ = point.estimate;
  return {retired, point.estimate < origin_ ? 0 : static_cast<double>(point.estimate - origin_)};
}

void TimeKnots::add(const Crossing& crossing) {
  Crossing next = crossing;
  if (any_) {
    next.at.retired = std::max(next.at.retired, last_.at.retired);
    next.at.ticks = std::max(next.at.ticks, last_.at.ticks);
    if (!add_by_cycles(next)) add_straight(next);
  } else {
    add(next.at.retired, next.at.ticks);
  }
  any_ = true;
  last_ = next;
  pauses_.clear();
}

// If there are CYC packets in between, spreads the instructions over the cycles: a stopped clock retires
// none.
bool TimeKnots::add_by_cycles(const Crossing& next) {
  constexpr std::uint64_t kMost = 4096;  // points
  if (next.number <= last_.number + 1 || next.number - last_.number > kMost) return false;
  std::vector<Knot> between;  // knots of (cycles so far in ticks, time)
  double cycles = 0;
  bool any = false;
  TimePoint before = track_->point(last_.number);
  for (std::uint64_t number = last_.number + 1; number <= next.number; ++number) {
    const TimePoint point = track_->point(number);
    if (!point.is_known() || !before.is_known()) return false;
    any = any || point.cycles;
    if (point.cycles) cycles += static_cast<double>(point.low - std::min(point.low, before.low));
    if (number != next.number) between.push_back(knot_at(cycles, point));
    before = point;
  }
  if (!any || cycles <= 0) return false;
  const double instructions = next.at.retired - last_.at.retired;
  for (const Knot& knot : between) add(last_.at.retired + instructions * knot.retired / cycles, knot.ticks);
  add(next.at.retired, next.at.ticks);
  return true;
}

// Linear, except for the time for which the program stopped: the time that remains at the recent rate of
// instructions.
void TimeKnots::add_straight(const Crossing& next) {
  const double instructions = next.at.retired - last_.at.retired;
  const double ticks = next.at.ticks - last_.at.ticks;
  const bool stood_all_the_time = last_.stood_after && next.stood_before;
  if (last_.stood_before) pauses_.insert(pauses_.begin(), last_.at.retired);
  if (next.stood_after) pauses_.push_back(next.at.retired);
  if (!stood_all_the_time && !pauses_.empty() && ran_instructions_ > 0) {
    const double rate = ran_ticks_ / ran_instructions_;
    add_by_rate(rate, ticks - rate * instructions);
  } else if (!stood_all_the_time && pauses_.empty() && instructions > 0) {
    constexpr double kOld = 0.75;
    ran_ticks_ = ran_ticks_ * kOld + ticks;
    ran_instructions_ = ran_instructions_ * kOld + instructions;
  }
  add(next.at.retired, next.at.ticks);
}

// Puts knots on both sides of each pause. The pauses share the remaining time.
void TimeKnots::add_by_rate(double rate, double left) {
  if (left <= 0) return;
  const double each = left / static_cast<double>(pauses_.size());
  double stood = 0;
  for (const double pause : pauses_) {
    const double ran = last_.at.ticks + rate * (std::max(pause, last_.at.retired) - last_.at.retired);
    add(pause, ran + stood);
    stood += each;
    add(pause, ran + stood);
  }
}

void TimeKnots::add(double retired, double ticks) {
  if (!knots_.empty()) {
    retired = std::max(retired, knots_.back().retired);
    ticks = std::max(ticks, knots_.back().ticks);
  }
  knots_.push_back({retired, ticks});
}

void TimeEstimates::begin_stream(std::unique_ptr<time::TimeTrack> track) {
  knots_ = track != nullptr ? std::make_unique<TimeKnots>(std::move(track)) : nullptr;
  any_knot_ = false;
  from_ = {};
  newest_ = 0;
}

// Advances to the last knot before a row. False: the knot after it is not known yet.
bool TimeEstimates::advance(std::uint64_t retired) noexcept {
  auto& knots = knots_->knots();
  const auto at = static_cast<double>(retired);
  while (!knots.empty() && knots.front().retired < at) {
    // Keeps the last knot, because later knots must not be before it.
    if (knots.size() == 1) return false;
    from_ = knots.front();
    any_knot_ = true;
    knots.pop_front();
  }
  return !knots.empty();
}

std::uint64_t TimeEstimates::estimate(const Row& row) noexcept {
  const time::TimeRange& range = row.range;
  if (!range.known) return 0;
  std::uint64_t tsc = 0;
  if (knots_ && !knots_->knots().empty())
    tsc = knots_->origin() +
          static_cast<std::uint64_t>(std::llround(ticks_at(static_cast<double>(row.retired))));
  const std::uint64_t high = range.tsc + std::min<std::uint64_t>(range.error, UINT64_MAX - range.tsc);
  newest_ = std::clamp(std::max(tsc, newest_), range.tsc, high);
  return newest_;
}

// Interpolates to the oldest remaining knot; 0 if there is no knot before.
double TimeEstimates::ticks_at(double retired) const noexcept {
  const TimeKnots::Knot& next = knots_->knots().front();
  if (next.retired <= retired) return next.ticks;
  if (!any_knot_) return 0;
  return from_.ticks +
         (retired - from_.retired) / (next.retired - from_.retired) * (next.ticks - from_.ticks);
}

void TimeEstimates::fill(Batch& batch) {
  auto* const cells = estimate_cells(batch);
  while (!rows_.empty() && (!rows_.front().range.known || !knots_ || advance(rows_.front().retired))) {
    cells[batch.rows() - rows_.size()] = estimate(rows_.front());
    rows_.pop_front();
  }
}

void TimeEstimates::end_stream(Batch& batch) {
  auto* const cells = estimate_cells(batch);
  for (; !rows_.empty(); rows_.pop_front()) {
    if (knots_) static_cast<void>(advance(rows_.front().retired));
    cells[batch.rows() - rows_.size()] = estimate(rows_.front());
  }
  knots_.reset();
}

}  // namespace ptkit::tables::columns
