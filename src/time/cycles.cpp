#include "time/cycles.h"

#include <algorithm>
#include <cmath>

#include "base/cpu/isa.h"
#include "time/cycles_wide.h"

namespace ptkit::time {
namespace {

// Largest deviation of a core clock from its nominal ratio to the bus clock (spread spectrum, bus clock
// tolerance).
constexpr double kDrift = 1.0 / 256;

// Ticks by which a chain of cycles may miss a known time before it is considered wrong.
constexpr double kChainSlack = 64;

// The CYC packets between two known times.
struct Segment {
  std::size_t closing;  // index of the closing TSC or MTC packet
  std::size_t begin;    // range of the CYC packets
  std::size_t end;
  bool open_joined;   // the first CYC counts from the opening TSC or MTC packet
  bool close_joined;  // the last CYC has the time of the closing TSC or MTC packet
  double ticks;       // between the TSC or MTC packets
};

struct Sum {
  double ticks = 0;        // least time of all cycles
  double cycle = 0;        // time of the slowest cycle
  double count = 0;        // number of CYC packets
  std::uint8_t ratio = 0;  // largest core:bus ratio
  bool whole = true;       // no cycles are missing
};

// Prefix sum of cycles since a known time, with the error of the sum.
struct Chain {
  double base = 0;
  double ticks = 0;
  double margin = 0;

  void restart(double at) noexcept {
    base = at;
    ticks = margin = 0;
  }
  [[nodiscard]] bool is_at(double time) const noexcept { return base == time && ticks == 0 && margin == 0; }
};

class CycleResolver {
 public:
  CycleResolver(Frame& frame, const ClockModel& model) noexcept
      : frame_(frame), tsc_mtc_points_(frame.tsc_mtc_points), cycles_(frame.cycles), model_(model) {}

  void run(double last_cyc_low) {
    cycles_.prepare();
    weigh();
    if (cycles_.size > 0 && model_.bus_ticks > 0) fit_segments();
    limit_low(last_cyc_low);
    limit_high();
  }

 private:
  void weigh() noexcept;
  [[nodiscard]] Sum sum_of(const Segment& segment) const noexcept;
  [[nodiscard]] std::uint8_t ratio_ahead(std::size_t from) const noexcept;
  void scale(const Segment& segment, double factor, double margin) noexcept;
  void fit(const Segment& segment) noexcept;
  void fit_segments() noexcept;
  void rank_cycles(std::size_t begin, std::size_t end, Rank before) noexcept;
  void raise_before(std::size_t point, double floor) noexcept;
  void limit_low(double base) noexcept;
  [[nodiscard]] bool is_straight(const Chain& chain, double limit) const noexcept {
    return !odd_ && chain.is_at(limit);
  }
  void sum_both_ways(std::size_t begin, std::size_t end) const noexcept;
  void limit_low_of(std::size_t begin, std::size_t end, Chain& chain, double& floor) const noexcept;
  void limit_high() noexcept;
  void limit_high_of(std::size_t begin, std::size_t end, Chain& chain, double& ceiling) const noexcept;

  Frame& frame_;
  std::vector<TscMtcPoint>& tsc_mtc_points_;
  Cycles& cycles_;
  const ClockModel& model_;
  double cycle_ = 0;  // ticks of a cycle, if all ratios are equal
  // Weights may be negative, or margins differ between two TSC or MTC packets: compute the limits one by one.
  bool odd_ = false;
  bool wide_ = base::cpu::isa_choice().isa == base::cpu::Isa::AVX512;
};

void CycleResolver::weigh() noexcept {
  double* const weight = cycles_.weight.data();
  const std::uint8_t* const ratio = cycles_.ratio.data();
  if (!cycles_.ratios_differ && !cycles_.any_lost) {
    const double ticks = cycles_.size == 0 ? 0 : model_.cycle_ticks(ratio[0]);
    for (std::size_t i = 0; i < cycles_.size; ++i) weight[i] *= ticks;
  } else {
    for (std::size_t i = 0; i < cycles_.size; ++i) {
      weight[i] = (cycles_.flags[i] & Cycles::LOST) != 0 ? 0 : weight[i] * model_.cycle_ticks(ratio[i]);
    }
  }
  std::fill_n(cycles_.margin.data(), cycles_.size, 0.0);
}

Sum CycleResolver::sum_of(const Segment& segment) const noexcept {
  Sum sum;
  sum.whole = segment.open_joined && segment.close_joined;
  sum.count = static_cast<double>(segment.end - segment.begin);
  sum.ratio = cycles_.ratio[segment.begin];
  if (cycles_.ratios_differ || cycles_.any_lost) {
    for (std::size_t i = segment.begin; i < segment.end; ++i) {
      sum.cycle = std::max(sum.cycle, model_.cycle_ticks(cycles_.ratio[i]));
      sum.ratio = std::max(sum.ratio, cycles_.ratio[i]);
      sum.whole = sum.whole && (cycles_.flags[i] & Cycles::LOST) == 0;
    }
  } else {
    sum.cycle = cycle_;
  }
  const double* const weight = cycles_.weight.data();
  for (std::size_t i = segment.begin + (segment.open_joined ? 0 : 1); i < segment.end; ++i) {
    sum.ticks += weight[i];
  }
  return sum;
}

void CycleResolver::scale(const Segment& segment, double factor, double margin) noexcept {
  odd_ = odd_ || factor < 0;
  if (wide_) return scale_wide(cycles_, segment.begin, segment.end, factor, margin);
  double* const weight = cycles_.weight.data();
  if (factor != 1) {
    for (std::size_t i = segment.begin; i < segment.end; ++i) weight[i] *= factor;
  }
  std::fill(cycles_.margin.data() + segment.begin, cycles_.margin.data() + segment.end, margin);
}

// Largest ratio that may be in force: a CBR packet follows the change that it reports.
std::uint8_t CycleResolver::ratio_ahead(std::size_t from) const noexcept {
  std::uint8_t ratio = 0;
  std::size_t seen = 0;
  for (std::size_t k = from; k < tsc_mtc_points_.size(); ++k) {
    if (tsc_mtc_points_[k].bounded() && ++seen > 2) return ratio;
    for (std::size_t i = tsc_mtc_points_[k].cycles; i < frame_.cycles_end(k); ++i) {
      ratio = std::max(ratio, cycles_.ratio[i]);
    }
  }
  return std::max(ratio, frame_.next_ratio);
}

// Scales the cycles of a segment to its length.
void CycleResolver::fit(const Segment& segment) noexcept {
  Sum sum = sum_of(segment);
  const double margin = sum.cycle + model_.slop + 1;
  const double tolerance = 2 * sum.cycle + 2 * model_.slop + segment.ticks * kDrift;
  if (sum.ticks > segment.ticks + tolerance) {
    // The core was faster than the core:bus ratios of all CBR packets so far: the CBR packet with the actual
    // ratio may follow this segment.
    const std::uint8_t ratio = std::max(sum.ratio, ratio_ahead(segment.closing));
    for (std::size_t i = segment.begin; i < segment.end && ratio > 0; ++i) {
      cycles_.weight[i] *= static_cast<double>(cycles_.ratio[i]) / ratio;
    }
    sum = sum_of(segment);
  }
  const double slack = segment.ticks - sum.ticks;
  const double rounding = (sum.count + 2) * sum.cycle;  // each CYC may omit a fraction of a cycle
  if (sum.ticks <= 0) {
    scale(segment, 1, margin);
  } else if (slack < -tolerance) {
    scale(segment, 0, 0);  // these cycles belong to another segment
  } else if (slack < 0 || (sum.whole && slack > 4 * sum.cycle && slack <= rounding + tolerance)) {
    scale(segment, segment.ticks / sum.ticks, margin + std::abs(slack));
  } else {
    scale(segment, 1, margin);
  }
}

void CycleResolver::fit_segments() noexcept {
  cycle_ = model_.cycle_ticks(cycles_.ratio[0]);
  std::size_t open = tsc_mtc_points_.size();
  for (std::size_t k = 0; k < tsc_mtc_points_.size(); ++k) {
    if (!tsc_mtc_points_[k].exact()) continue;
    if (open < k && tsc_mtc_points_[open].cycles < tsc_mtc_points_[k].cycles) {
      fit({k, tsc_mtc_points_[open].cycles, tsc_mtc_points_[k].cycles, tsc_mtc_points_[open].joined,
           tsc_mtc_points_[k].joined, tsc_mtc_points_[k].low - tsc_mtc_points_[open].low});
    }
    open = k;
  }
  if (open == tsc_mtc_points_.size()) return;
  for (std::size_t i = tsc_mtc_points_[open].cycles; i < cycles_.size; ++i) {
    cycles_.margin[i] = model_.cycle_ticks(cycles_.ratio[i]) + model_.slop + 1;
  }
  odd_ = odd_ || cycles_.ratios_differ;
}

// Raises the lower limit of the point before a TSC or MTC packet that was generated in its cycle.
void CycleResolver::raise_before(std::size_t point, double floor) noexcept {
  if (point == 0) return;
  const std::size_t index = tsc_mtc_points_[point].cycles;
  double& low =
      index > tsc_mtc_points_[point - 1].cycles ? cycles_.low[index - 1] : tsc_mtc_points_[point - 1].low;
  low = std::max(low, floor);
}

// Rank of the limits: that of cycles where a CYC packet has weight, else that of the preceding point.
void CycleResolver::rank_cycles(std::size_t begin, std::size_t end, Rank before) noexcept {
  if (wide_) return rank_wide(cycles_, begin, end, before);
  const double* const weight = cycles_.weight.data();
  auto* const rank = reinterpret_cast<std::uint8_t*>(cycles_.rank.data());
  const auto other = static_cast<std::uint8_t>(before);
  const auto change = static_cast<std::uint8_t>(other ^ static_cast<std::uint8_t>(Rank::CYC));
  for (std::size_t i = begin; i < end; ++i) {
    const auto counted = static_cast<std::uint8_t>(weight[i] > 0 ? 0xff : 0);
    rank[i] = static_cast<std::uint8_t>(other ^ (change & counted));
  }
}

// Lower limits: forward pass from each known time. The chain of cycles starts at `base`.
void CycleResolver::limit_low(double base) noexcept {
  Chain chain{base, 0, 0};
  double floor = 0;
  TimeSource source = TimeSource::NONE;
  for (std::size_t k = 0; k < tsc_mtc_points_.size(); ++k) {
    TscMtcPoint& point = tsc_mtc_points_[k];
    if (point.usable) {
      // Exactly known times override cycles.
      const bool exact = point.exact();
      if (exact || point.low > floor || k == 0) floor = point.low;
      if (exact && chain.base + chain.ticks > floor + kChainSlack) chain.restart(floor);
      source = point.mtc ? TimeSource::MTC : TimeSource::TSC;
      point.low = floor;
      point.source = source;
      if (point.exact() && point.joined) {
        chain.restart(floor);
        raise_before(k, floor);
      }
    }
    const std::size_t end = frame_.cycles_end(k);
    rank_cycles(point.cycles, end, rank_of(source));
    limit_low_of(point.cycles, end, chain, floor);
  }
}

// Computes two prefix sums: `low` gets the ticks up to each cycle, `high` the ticks after it. Each addition
// depends on the previous one, so interleaving both sums takes the time of one.
void CycleResolver::sum_both_ways(std::size_t begin, std::size_t end) const noexcept {
  const double* const weight = cycles_.weight.data();
  double* const low = cycles_.low.data();
  double* const high = cycles_.high.data();
  double forward = 0;
  double backward = 0;
  for (std::size_t i = begin, j = end; i < end; ++i) {
    forward += weight[i];
    low[i] = forward;
    high[--j] = backward;
    backward += weight[j];
  }
}

void CycleResolver::limit_low_of(std::size_t begin, std::size_t end, Chain& chain,
                                 double& floor) const noexcept {
  const double* const weight = cycles_.weight.data();
  const double* const margin = cycles_.margin.data();
  double* const low = cycles_.low.data();
  sum_both_ways(begin, end);
  if (is_straight(chain, floor) && begin < end) {
    // The limits ascend, and no chain is below its predecessor.
    const double off = margin[begin];
    chain.ticks = low[end - 1];
    chain.margin = off;
    const double base = floor;
    if (wide_) {
      limit_low_wide(cycles_, begin, end, base, off);
    } else {
      for (std::size_t i = begin; i < end; ++i) low[i] = std::max(base, base + low[i] - off);
    }
    floor = low[end - 1];
    return;
  }
  for (std::size_t i = begin; i < end; ++i) {
    chain.ticks += weight[i];
    chain.margin = std::max(chain.margin, margin[i]);
    if (chain.base + chain.ticks < floor) chain.restart(floor);
    floor = std::max(floor, chain.base + chain.ticks - chain.margin);
    low[i] = floor;
  }
}

// Upper limits: backward pass from each known time.
void CycleResolver::limit_high() noexcept {
  Chain chain{kNoLimit, 0, 0};
  double ceiling = kNoLimit;
  for (std::size_t k = tsc_mtc_points_.size(); k-- > 0;) {
    TscMtcPoint& point = tsc_mtc_points_[k];
    limit_high_of(point.cycles, frame_.cycles_end(k), chain, ceiling);
    if (point.usable) {
      ceiling = std::min(ceiling, point.high);
      point.high = ceiling;
      if (point.exact() && point.joined) chain.restart(ceiling);
    }
    if (point.low > point.high) std::swap(point.low, point.high);
  }
}

void CycleResolver::limit_high_of(std::size_t begin, std::size_t end, Chain& chain,
                                  double& ceiling) const noexcept {
  const double* const weight = cycles_.weight.data();
  const double* const margin = cycles_.margin.data();
  double* const low = cycles_.low.data();
  double* const high = cycles_.high.data();
  const auto put = [low, high](std::size_t i, double limit) {
    high[i] = std::max(low[i], limit);
    low[i] = std::min(low[i], limit);
  };
  if (is_straight(chain, ceiling) && ceiling < kNoLimit && begin < end) {
    const double off = margin[begin];
    const double base = ceiling;
    chain.ticks = high[begin] + weight[begin];  // see sum_both_ways()
    chain.margin = off;
    ceiling = std::min(base, base - high[begin] + off);
    if (wide_) return limit_high_wide(cycles_, begin, end, base, off);
    for (std::size_t i = begin; i < end; ++i) put(i, std::min(base, base - high[i] + off));
    return;
  }
  for (std::size_t i = end; i-- > begin;) {
    if (chain.base - chain.ticks > ceiling || chain.base == kNoLimit) chain.restart(ceiling);
    ceiling = std::min(ceiling, chain.base - chain.ticks + chain.margin);
    put(i, ceiling);
    // After the last known time only cycles give the time, by the core:bus ratio.
    if (high[i] == kNoLimit && cycles_.rank[i] == Rank::CYC) cycles_.rank[i] = Rank::CBR;
    chain.ticks += weight[i];
    chain.margin = std::max(chain.margin, margin[i]);
  }
}

}  // namespace

void resolve_cycles(Frame& frame, const ClockModel& model, double last_cyc_low) {
  CycleResolver(frame, model).run(last_cyc_low);
}

double tail_limit(const Frame& frame, const ClockModel& model) noexcept {
  if (!model.mtc_usable || frame.lost_at_end || frame.tsc_mtc_points.empty()) return kNoLimit;
  double limit = kNoLimit;
  for (std::size_t k = frame.tsc_mtc_points.size(); k-- > 0;) {
    for (std::size_t i = frame.tsc_mtc_points[k].cycles; i < frame.cycles_end(k) && frame.cycles.any_lost;
         ++i) {
      if ((frame.cycles.flags[i] & Cycles::LOST) != 0) return kNoLimit;
    }
    const TscMtcPoint& point = frame.tsc_mtc_points[k];
    if (point.usable) {
      // The next MTC is missing, and one more may be lost.
      limit = point.high + 2 * model.edge_ticks();
      break;
    }
    if (point.lost) return kNoLimit;
  }
  return std::max(limit, frame.last_low() + model.edge_ticks());
}

}  // namespace ptkit::time
