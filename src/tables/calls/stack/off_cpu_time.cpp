#include "tables/calls/stack/off_cpu_time.h"

#include <algorithm>

#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {
namespace {

[[nodiscard]] Length less(const Length& all, const Length& part) noexcept {
  return {all.least - part.least, all.most - part.most};
}

[[nodiscard]] Length& length_of(OffCpuTime& time, OffCpuInterval::Kind kind) noexcept {
  if (kind == OffCpuInterval::Kind::UNTRACED) return time.untraced;
  return kind == OffCpuInterval::Kind::SWITCHED ? time.switched : time.lost;
}

}  // namespace

OffCpuTime OffCpuTime::without(const OffCpuTime& part) const noexcept {
  return {less(untraced, part.untraced), less(switched, part.switched), less(lost, part.lost)};
}

OffCpuClock::Since OffCpuClock::at(const StreamPosition& position) noexcept {
  return {position.tsc, position.tsc + position.tsc_error, position.time_known};
}

void OffCpuClock::add(OffCpuInterval::Kind kind, const Since& begin, const Since& end) {
  const bool is_one_time = begin.earliest == end.earliest && begin.latest == end.latest;
  if (!begin.known || !end.known || is_one_time) return;
  length_of(sum_, kind)
      .add({std::max(end.earliest, begin.latest) - begin.latest,
            std::max(end.latest, begin.earliest) - begin.earliest});
  ++version_;
  if (listener_ == nullptr || is_suspended_ || kind == OffCpuInterval::Kind::LOST) return;
  if (end.earliest > begin.latest) listener_->on_off_cpu({kind, true, begin.latest, end.earliest, 0});
}

// A loss at an end of the trace has one known time, or none.
void OffCpuClock::report_loss(const Since& begin, const Since& end, std::uint64_t instructions) {
  if (listener_ == nullptr) return;
  OffCpuInterval loss{OffCpuInterval::Kind::LOST, begin.known || end.known, begin.latest, end.earliest,
                      instructions};
  if (!begin.known) loss.begin = loss.end;
  if (!end.known || loss.end < loss.begin) loss.end = loss.begin;
  if (!loss.known) loss.begin = loss.end = 0;
  listener_->on_off_cpu(loss);
}

void OffCpuClock::disable(const StreamPosition& position) {
  if (is_off_) return;
  is_off_ = true;
  since_ = at(position);
}

void OffCpuClock::end_untraced(const StreamPosition& position) {
  is_off_ = false;
  add(OffCpuInterval::Kind::UNTRACED, since_, at(position));
}

void OffCpuClock::leave(const StreamPosition& position) {
  if (is_left_) return;
  is_left_ = true;
  const Since now = at(position);
  if (is_off_) add(OffCpuInterval::Kind::UNTRACED, since_, now);
  since_ = now;
}

void OffCpuClock::suspend(const StreamPosition& position) {
  leave(position);
  is_suspended_ = true;
  if (listener_ != nullptr) listener_->on_other_stack();
}

void OffCpuClock::come_back(const StreamPosition& position) {
  if (!is_left_) return;
  is_left_ = false;
  const Since now = at(position);
  add(OffCpuInterval::Kind::SWITCHED, since_, now);
  is_suspended_ = false;
  since_ = now;  // packets may still be disabled
}

void OffCpuClock::lose(const StreamPosition& last, const StreamPosition& position) {
  ended_off_ = is_off_;
  enable(last);
  add(OffCpuInterval::Kind::LOST, at(last), at(position));
  report_loss(at(last), at(position), position.instructions);
}

void OffCpuClock::sum_up_to(const StreamPosition& position) {
  if (!is_left_ && !is_off_) return;
  const Since now = at(position);
  add(is_left_ ? OffCpuInterval::Kind::SWITCHED : OffCpuInterval::Kind::UNTRACED, since_, now);
  since_ = now;
}

void OffCpuClock::finish(const StreamPosition& position) {
  ended_off_ = is_off_;
  come_back(position);
  enable(position);
}

}  // namespace ptkit::tables::calls
