#include "trace_unit/generator/timing.h"

#include <algorithm>
#include <limits>

namespace ptkit::trace_unit::generator {
namespace {

constexpr std::uint64_t kMaxFastCounter = 0x1ff;
constexpr unsigned kMaxMtcPeriod = 15;
// A decoder can tell 255 missing MTCs apart; half of it leaves room for what it must guess.
constexpr std::uint64_t kStopPeriods = 128;

// value * factor / divisor without overflow of the product, rounded down; factor and divisor have 32 bits.
std::uint64_t scale(std::uint64_t value, std::uint64_t factor, std::uint64_t divisor) noexcept {
  return value / divisor * factor + value % divisor * factor / divisor;
}

// Cycles at `tsc` between two instants, the core clock running evenly.
std::uint64_t interpolate(const Instant& from, const Instant& to, std::uint64_t tsc) noexcept {
  const std::uint64_t span = to.tsc - from.tsc;
  const std::uint64_t cycles = to.cycles - from.cycles;
  if (span == 0) return to.cycles;
  const double share = static_cast<double>(tsc - from.tsc) / static_cast<double>(span);
  const auto part = static_cast<std::uint64_t>(share * static_cast<double>(cycles));
  return from.cycles + std::min(part, cycles);
}

}  // namespace

CrystalClock::CrystalClock(const GeneratorConfig& config) noexcept
    : numerator_(std::max(config.tsc_ctc_numerator, 1U)),
      denominator_(std::max(config.tsc_ctc_denominator, 1U)),
      origin_(config.tsc_at_ctc_zero) {}

std::uint64_t CrystalClock::ctc_at(std::uint64_t tsc) const noexcept {
  if (denominator_ == 1) return (tsc - origin_) / numerator_;
  return scale(tsc - origin_, denominator_, numerator_);
}

std::uint64_t CrystalClock::tsc_at(std::uint64_t ctc) const noexcept {
  if (denominator_ == 1) return origin_ + ctc * numerator_;
  // ceil(ctc * EBX / EAX)
  const std::uint64_t remainder = ctc % denominator_ * numerator_;
  return origin_ + ctc / denominator_ * numerator_ + (remainder + denominator_ - 1) / denominator_;
}

std::uint64_t CrystalClock::fast_counter(std::uint64_t tsc) const noexcept {
  return std::min(tsc - tsc_at(ctc_at(tsc)), kMaxFastCounter);
}

Timing::Timing(const GeneratorConfig& config) noexcept
    : crystal_(config),
      stop_ticks_(config.stop_ticks),
      threshold_(config.cyc_threshold == 0
                     ? 0
                     : std::uint64_t{1} << (std::min<unsigned>(config.cyc_threshold, 15) - 1)),
      mtc_period_(static_cast<std::uint8_t>(std::min<unsigned>(config.mtc_period, kMaxMtcPeriod))) {
  if (stop_ticks_ == 0) stop_ticks_ = crystal_.tsc_at(kStopPeriods << mtc_period_) - crystal_.tsc_at(0);
  stop_ticks_ = std::max(stop_ticks_, std::uint64_t{1});
}

Instant Timing::not_before_now(Instant at) const noexcept {
  return {std::max(at.tsc, now_.tsc), std::max(at.cycles, now_.cycles)};
}

// Time of the first MTC behind now_. Kept until time has passed it: divisions are slow.
std::uint64_t Timing::next_mtc_tsc() noexcept {
  if (now_.tsc < mtc_tsc_) return mtc_tsc_;
  mtc_number_ = (crystal_.ctc_at(now_.tsc) >> mtc_period_) + 1;
  mtc_tsc_ = crystal_.tsc_at(mtc_number_ << mtc_period_);
  if (mtc_tsc_ <= now_.tsc) mtc_tsc_ = std::numeric_limits<std::uint64_t>::max();  // TSC wraps
  return mtc_tsc_;
}

std::optional<std::uint8_t> Timing::next_mtc(Instant to) noexcept {
  if (!passes_mtc(to)) return std::nullopt;
  now_ = {mtc_tsc_, interpolate(told_, to, mtc_tsc_)};
  return static_cast<std::uint8_t>(mtc_number_);
}

std::optional<std::uint64_t> Timing::take_cycles(std::uint64_t cycles) noexcept {
  if (cycles <= cycles_told_) return std::nullopt;
  const std::uint64_t passed = cycles - cycles_told_;
  if (passed < threshold_) return std::nullopt;
  cycles_told_ = cycles;
  return passed;
}

}  // namespace ptkit::trace_unit::generator
