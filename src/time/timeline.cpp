#include "time/timeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fields.h"
#include "time/cycles.h"

namespace ptkit::time {

// The timeline handles few errata: the packet decoder handles SKD007 and SKZ84; cycles lost to SKL168 keep
// both limits valid; a TMA that contradicts its neighbours is not used on any CPU.
Timeline::Timeline(base::Bytes stream, std::span<const trace::KnownLoss> losses, const packet::Errata& errata,
                   const ClockModel& model)
    : reader_(stream, losses, errata), model_(model) {
  reader_.set_tnt_time(model_.tnt_time);
}

Timeline::Timeline(const Timeline& like, const State& state)
    : reader_(state.reader), model_(like.model_), opening_(state.opening), wraps_seen_(state.wraps_seen) {
  history_.begin(state.tsc);
}

Timeline::Timeline(const Timeline& like, std::uint64_t psb, const CarriedTime& carried)
    : reader_(like.reader_), model_(like.model_), wraps_seen_(carried.wraps_seen) {
  reader_.begin_at(psb, carried);
}

CarriedTime Timeline::carried() const noexcept {
  CarriedTime carried = reader_.carried();
  carried.wraps_seen = wraps_seen_;
  return carried;
}

std::vector<std::uint8_t> Timeline::state_bytes_at(std::uint64_t psb) const {
  const State* const found = state_at(psb);
  if (found == nullptr) return {};
  State state = *found;
  base::FieldWriter fields;
  (void)state.describe(fields);
  return std::move(fields.bytes());
}

const Timeline::State* Timeline::state_at(std::uint64_t psb) const noexcept {
  for (const auto& state : states_) {
    if (state && state->psb == psb) return &*state;
  }
  return nullptr;
}

void Timeline::note_state() {
  const State state{frame_.psb, reader_, opening_, wraps_seen_, history_.point(history_.size() - 1)};
  states_[next_state_++ % states_.size()] = state;
}

void Timeline::read_past(std::uint64_t offset) {
  while (!is_past(offset)) {
    if (!read_frame()) return;
  }
}

void Timeline::read_on(std::uint64_t offset, std::uint64_t to) {
  while (!is_past(to) && psbs_[2] <= offset) {  // the next frame may make psbs_[1] the first
    if (!read_frame()) return;
  }
}

bool Timeline::read_frame() {
  if (!reader_.next(frame_)) {
    ended_ = true;
    return false;
  }
  forget();
  resolve();
  if (frame_.end_in_psb) note_state();
  return true;
}

void Timeline::resolve() {
  const bool back = frame_.opened && frame_.end == FrameEnd::TSC && frame_.end_tsc < opening_.origin;
  double end = kNoLimit;
  if (frame_.end == FrameEnd::TSC && !back) end = static_cast<double>(frame_.end_tsc - opening_.origin);
  if (frame_.opened) {
    resolve_points(end, back);
    history_.append(frame_, opening_.origin, back);
  } else if (frame_.end == FrameEnd::TSC) {
    history_.begin(frame_.tsc_mtc_points.back().extent, frame_.end_tsc, kUnknown);
  }
  open_next(end);
}

void Timeline::resolve_points(double end, bool back) {
  std::vector<TscMtcPoint>& tsc_mtc_points = frame_.tsc_mtc_points;
  tsc_mtc_points.front().low = opening_.low;
  tsc_mtc_points.front().high = opening_.high;
  if (frame_.end == FrameEnd::TSC) {
    tsc_mtc_points.back().low = tsc_mtc_points.back().high = back ? 0 : end;
    tsc_mtc_points.back().usable = !back;
  }
  const MtcBounds bounds{opening_.low, end, opening_.reference,
                         end < kNoLimit ? reference_of(frame_.end_tma, end, model_) : CtcReference{},
                         wraps_seen_};
  const MtcResult mtc = resolve_mtc(frame_, bounds, model_);
  wraps_seen_ = wraps_seen_ || mtc.wrapped;
  resolve_cycles(frame_, model_, opening_.cyc_low);
  if (frame_.end != FrameEnd::STREAM) return;
  const double limit = mtc.usable ? tail_limit(frame_, model_) : kNoLimit;
  tail_ = add_ceil(opening_.origin, limit);
  const auto lower = [limit](double low, double& high) { high = std::min(high, std::max(limit, low)); };
  for (TscMtcPoint& point : tsc_mtc_points) lower(point.low, point.high);
  for (std::size_t i = 0; i < frame_.cycles.size; ++i) lower(frame_.cycles.low[i], frame_.cycles.high[i]);
}

void Timeline::open_next(double end) {
  Opening next;
  double shift = end;
  if (frame_.end == FrameEnd::TSC) {
    next.origin = frame_.end_tsc;
    next.reference = reference_of(frame_.end_tma, 0, model_);
  } else if (frame_.end == FrameEnd::CUT && frame_.opened) {
    const double low = frame_.last_low();
    shift = std::floor(low);
    next.origin = add_floor(opening_.origin, shift);
    next.low = low - shift;
    next.high = frame_.last_high() - shift;
  }
  if (!next.reference.known && frame_.opened && shift < kNoLimit)
    next.reference = reference_of_last_mtc(shift);
  if (frame_.opened && shift < kNoLimit) next.cyc_low = low_of_last_cyc() - shift;
  opening_ = next;
}

double Timeline::low_of_last_cyc() const noexcept {
  return frame_.cycles.size > 0 ? frame_.cycles.low[frame_.cycles.size - 1] : opening_.cyc_low;
}

CtcReference Timeline::reference_of_last_mtc(double shift) const noexcept {
  for (std::size_t i = frame_.tsc_mtc_points.size(); i-- > 0;) {
    const TscMtcPoint& point = frame_.tsc_mtc_points[i];
    if (!point.mtc || !point.usable) continue;
    if (point.high - point.low > 4 || !model_.mtc_usable) break;
    return {true, point.value << model_.mtc_period, (point.low + point.high) / 2 - shift,
            model_.mtc_period + 8};
  }
  return {};
}

// Drops points that no query needs any more: all PSB intervals but the last ones.
void Timeline::forget() {
  if (frame_.psb != psbs_.back()) {
    std::rotate(psbs_.begin(), psbs_.begin() + 1, psbs_.end());
    psbs_.back() = frame_.psb;
  }
  forgotten_ += history_.forget(psbs_.front());
}

}  // namespace ptkit::time
