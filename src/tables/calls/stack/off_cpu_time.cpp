#include "tables/calls/stack/off_cpu_time.h"

#include <algorithm>

#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {
namespace {

[[nodiscard]] Length less(const Length& all, const Length& part) noexcept {
  return {all.least - part.least, all.most - part.most};
}

}  // namespace

OffCpuTime OffCpuTime::without(const OffCpuTime& part) const noexcept {
  return {less(untraced, part.untraced), less(switched, part.switched), less(lost, part.lost)};
}

OffCpuClock::Since OffCpuClock::at(const StreamPosition& position) noexcept {
  return {position.tsc, position.tsc + position.tsc_error, position.time_known};
}

void OffCpuClock::add(Length OffCpuTime::*to, const Since& begin, const Since& end) {
  const bool is_one_time = begin.earliest == end.earliest && begin.latest == end.latest;
  if (!begin.known || !end.known || is_one_time) return;
  (sum_.*to).add({std::max(end.earliest, begin.latest) - begin.latest,
                  std::max(end.latest, begin.earliest) - begin.earliest});
  ++version_;
}

void OffCpuClock::disable(const StreamPosition& position) {
  if (is_off_) return;
  is_off_ = true;
  since_ = at(position);
}

void OffCpuClock::end_untraced(const StreamPosition& position) {
  is_off_ = false;
  add(&OffCpuTime::untraced, since_, at(position));
}

void OffCpuClock::leave(const StreamPosition& position) {
  if (is_left_) return;
  is_left_ = true;
  const Since now = at(position);
  if (is_off_) add(&OffCpuTime::untraced, since_, now);
  since_ = now;
}

void OffCpuClock::come_back(const StreamPosition& position) {
  if (!is_left_) return;
  is_left_ = false;
  const Since now = at(position);
  add(&OffCpuTime::switched, since_, now);
  since_ = now;  // packets may still be disabled
}

void OffCpuClock::lose(const StreamPosition& last, const StreamPosition& position) {
  ended_off_ = is_off_;
  enable(last);
  add(&OffCpuTime::lost, at(last), at(position));
}

void OffCpuClock::sum_up_to(const StreamPosition& position) {
  if (!is_left_ && !is_off_) return;
  const Since now = at(position);
  add(is_left_ ? &OffCpuTime::switched : &OffCpuTime::untraced, since_, now);
  since_ = now;
}

void OffCpuClock::finish(const StreamPosition& position) {
  ended_off_ = is_off_;
  come_back(position);
  enable(position);
}

}  // namespace ptkit::tables::calls
