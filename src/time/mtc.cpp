#include "time/mtc.h"

#include <algorithm>
#include <cmath>

namespace ptkit::time {
namespace {

constexpr unsigned kMtcBits = 8;
constexpr double kMtcWrap = 256;

// One MTC determines the times of all MTC packets, up to whole wraps in between.
class MtcResolver {
 public:
  MtcResolver(Frame& frame, const MtcBounds& bounds, const ClockModel& model) noexcept
      : frame_(frame), bounds_(bounds), model_(model), edge_(model.edge_ticks()) {
    // TMA has 16 bits of CTC, which may not include all 8 bits of a slow MTC.
    const unsigned bits = std::min({kMtcBits, known_bits(bounds.before), known_bits(bounds.after)});
    modulus_ = std::uint64_t{1} << bits;
  }

  bool run() {
    if (!model_.mtc_usable || modulus_ < 2 || !find_ends()) return false;
    if (!count_wraps()) return false;
    find_gaps();
    set_times();
    return true;
  }
  bool wrapped() const noexcept { return wraps_ > 0 && wraps_ < kNoLimit; }

 private:
  unsigned known_bits(const CtcReference& reference) const noexcept {
    if (!reference.known) return kMtcBits;
    return reference.bits > model_.mtc_period ? reference.bits - model_.mtc_period : 0;
  }
  double tolerance() const noexcept { return 2 * model_.ctc_ticks(1) + 2 * model_.slop + 2; }

  // MTC periods from the reference's period to the period that starts with `value`.
  std::uint64_t periods(std::uint64_t to, std::uint64_t from) const noexcept {
    return (to - from) & (modulus_ - 1);
  }
  std::uint64_t period_of(const CtcReference& reference) const noexcept {
    return reference.ctc >> model_.mtc_period;
  }
  double into_period(const CtcReference& reference) const noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << model_.mtc_period) - 1;
    return model_.ctc_ticks(static_cast<double>(reference.ctc & mask));
  }

  // Computes the earliest time of the first MTC, the latest time of the last MTC, and their distance without
  // wraps.
  bool find_ends() {
    const TscMtcPoint* first = nullptr;
    const TscMtcPoint* last = nullptr;
    for (const TscMtcPoint& point : frame_.tsc_mtc_points) {
      if (!point.mtc) continue;
      if (last != nullptr) distance_ += step(*last, point) * edge_;
      if (first == nullptr) first = &point;
      last = &point;
    }
    if (first == nullptr) return false;
    if (bounds_.before.known) {
      first_step_ = static_cast<double>(periods(first->value, period_of(bounds_.before)));
      earliest_first_ = bounds_.before.time - into_period(bounds_.before) + first_step_ * edge_;
      forward_ = true;
    }
    if (bounds_.after.known && bounds_.end < kNoLimit) {
      auto missing = periods(period_of(bounds_.after), last->value);
      // An MTC may be emitted before a TSC that was sampled earlier.
      if (missing == modulus_ - 1 && forward_ && earliest_first_ + distance_ > bounds_.end - tolerance()) {
        latest_last_ = earliest_first_ + distance_;
      } else {
        latest_last_ = bounds_.after.time - into_period(bounds_.after) - static_cast<double>(missing) * edge_;
      }
      backward_ = true;
    }
    return forward_ || backward_;
  }

  static double step(const TscMtcPoint& from, const TscMtcPoint& to) noexcept {
    const std::uint64_t delta = (to.value - from.value) & 0xff;
    return delta == 0 ? kMtcWrap : static_cast<double>(delta);
  }

  bool count_wraps() {
    const double wrap = static_cast<double>(modulus_) * edge_;
    if (forward_ && backward_) {
      const double excess = latest_last_ - (earliest_first_ + distance_);
      wraps_ = std::round(excess / wrap);
      if (wraps_ < 0 || std::abs(excess - wraps_ * wrap) > tolerance()) return false;
    } else if (forward_) {
      const double room = bounds_.end - (earliest_first_ + distance_) + tolerance();
      if (room < 0) return false;
      wraps_ = bounds_.end < kNoLimit ? std::floor(room / wrap) : bounds_.wraps ? kNoLimit : 0;
    } else {
      const double room = latest_last_ - distance_ - bounds_.begin + tolerance();
      if (room < 0) return false;
      wraps_ = std::floor(room / wrap);
      earliest_first_ = latest_last_ - distance_ - wraps_ * wrap;
    }
    shift_ = wraps_ == 0 ? 0 : wraps_ * wrap;
    return true;
  }

  // True if the MTC of the TMA's own period may follow the TMA.
  bool late() const noexcept {
    return forward_ && first_step_ == 0 && earliest_first_ + tolerance() >= bounds_.begin;
  }

  // Finds the gaps that may contain wraps: where packets are missing. If whole wraps are missing, no gap is
  // visible. A TSC outside of PSB+ comes after a pause (SDM, TSC packet: wake from a C-state), so the gap is
  // before it. Otherwise it may be anywhere.
  void find_gaps() {
    std::size_t index = 0;  // MTC index of a gap: the gap is before this MTC
    const TscMtcPoint* before = nullptr;
    bool lost = false;
    for (std::size_t k = 0; k < frame_.tsc_mtc_points.size(); ++k) {
      const TscMtcPoint& point = frame_.tsc_mtc_points[k];
      lost = lost || point.lost || lost_before(k);
      if (!point.mtc) continue;
      const bool missing = before == nullptr ? !forward_ || first_step_ != 1 : step(*before, point) != 1;
      if ((missing && !(before == nullptr && late())) || lost) note_gap(index);
      lost = false;
      before = &point;
      ++index;
    }
    if (bounds_.end == kNoLimit) return;
    const double remaining = bounds_.end - (earliest_first_ + distance_ + shift_);
    if (remaining > edge_ + tolerance()) note_gap(index);
    if (any_gap_) return;
    if (frame_.end_in_psb) note_gap(0);
    note_gap(index);
  }
  // True if a CYC packet between the preceding point and point `index` may follow missing packets.
  bool lost_before(std::size_t index) const noexcept {
    const Cycles& cycles = frame_.cycles;
    if (!cycles.any_lost) return false;
    const std::uint8_t* const flags = cycles.flags.data();
    const std::size_t begin = index == 0 ? 0 : frame_.tsc_mtc_points[index - 1].cycles;
    return std::any_of(flags + begin, flags + frame_.tsc_mtc_points[index].cycles,
                       [](std::uint8_t flag) { return (flag & Cycles::LOST) != 0; });
  }
  void note_gap(std::size_t index) noexcept {
    if (!any_gap_) first_gap_ = index;
    any_gap_ = true;
    last_gap_ = index;
  }

  void set_times() {
    std::size_t index = 0;
    double time = earliest_first_;
    const TscMtcPoint* before = nullptr;
    for (TscMtcPoint& point : frame_.tsc_mtc_points) {
      if (!point.mtc) continue;
      if (before != nullptr) time += step(*before, point) * edge_;
      const bool after_first = wraps_ != 0 && any_gap_ && index >= first_gap_;
      const bool after_last = wraps_ != 0 && any_gap_ && index >= last_gap_;
      point.low =
          std::max(bounds_.begin, time + (after_last && wraps_ < kNoLimit ? shift_ : 0) - model_.slop);
      point.high = std::min(bounds_.end, time + (after_first ? shift_ : 0) + model_.slop);
      if (point.high < point.low) {  // the CTC edge was before the TSC, and the packet came after it
        point.high = std::min(bounds_.end, point.low + (late() ? tolerance() : edge_));
        point.high = std::max(point.high, point.low);
      }
      point.usable = true;
      before = &point;
      ++index;
    }
  }

  Frame& frame_;
  const MtcBounds& bounds_;
  const ClockModel& model_;
  double edge_;  // ticks between two MTCs
  std::uint64_t modulus_ = 256;
  bool forward_ = false;
  bool backward_ = false;
  double first_step_ = 0;
  double earliest_first_ = 0;
  double latest_last_ = 0;
  double distance_ = 0;
  double wraps_ = 0;
  double shift_ = 0;
  bool any_gap_ = false;
  std::size_t first_gap_ = 0;
  std::size_t last_gap_ = 0;
};

}  // namespace

CtcReference reference_of(const Tma& tma, double tsc, const ClockModel& model) noexcept {
  constexpr std::uint16_t kSaturated = 0x1ff;
  if (!tma.known) return {};
  const double fast = tma.fast;
  if (fast > model.ctc_ticks(1) + 1 || (tma.fast == kSaturated && model.ctc_ticks(1) > kSaturated)) return {};
  return {true, tma.ctc, tsc - fast, 16};
}

MtcResult resolve_mtc(Frame& frame, const MtcBounds& bounds, const ClockModel& model) {
  MtcResolver resolver(frame, bounds, model);
  if (resolver.run()) return {true, resolver.wrapped()};
  for (TscMtcPoint& point : frame.tsc_mtc_points) {
    if (point.mtc) point.usable = false;
  }
  return {};
}

}  // namespace ptkit::time
