#include "tables/calls/stack/away_time.h"

#include <algorithm>

#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {
namespace {

[[nodiscard]] Length less(const Length& all, const Length& part) noexcept {
  return {all.least - part.least, all.most - part.most};
}

}  // namespace

AwayTime AwayTime::without(const AwayTime& part) const noexcept {
  return {less(untraced, part.untraced), less(switched, part.switched), less(lost, part.lost)};
}

AwayClock::Since AwayClock::at(const Place& place) noexcept {
  return {place.tsc, place.tsc + place.tsc_error, place.time_known};
}

void AwayClock::add(Length AwayTime::*to, const Since& begin, const Since& end) {
  const bool is_one_time = begin.earliest == end.earliest && begin.latest == end.latest;
  if (!begin.known || !end.known || is_one_time) return;
  (sum_.*to).add({std::max(end.earliest, begin.latest) - begin.latest,
                  std::max(end.latest, begin.earliest) - begin.earliest});
  ++version_;
}

void AwayClock::disable(const Place& place) {
  if (is_off_) return;
  is_off_ = true;
  since_ = at(place);
}

void AwayClock::end_untraced(const Place& place) {
  is_off_ = false;
  add(&AwayTime::untraced, since_, at(place));
}

void AwayClock::leave(const Place& place) {
  if (is_left_) return;
  is_left_ = true;
  const Since now = at(place);
  if (is_off_) add(&AwayTime::untraced, since_, now);
  since_ = now;
}

void AwayClock::come_back(const Place& place) {
  if (!is_left_) return;
  is_left_ = false;
  const Since now = at(place);
  add(&AwayTime::switched, since_, now);
  since_ = now;  // packets may still be disabled
}

void AwayClock::lose(const Place& last, const Place& place) {
  ended_off_ = is_off_;
  enable(last);
  add(&AwayTime::lost, at(last), at(place));
}

void AwayClock::sum_up_to(const Place& place) {
  if (!is_left_ && !is_off_) return;
  const Since now = at(place);
  add(is_left_ ? &AwayTime::switched : &AwayTime::untraced, since_, now);
  since_ = now;
}

void AwayClock::finish(const Place& place) {
  ended_off_ = is_off_;
  come_back(place);
  enable(place);
}

}  // namespace ptkit::tables::calls
