// Clocks of a trace unit: what time timing packets tell, and when they are due.
#pragma once

#include <cstdint>
#include <optional>

#include "trace_unit/generator/config.h"

namespace ptkit::trace_unit::generator {

struct Instant {
  std::uint64_t tsc = 0;
  std::uint64_t cycles = 0;  // core clock
};

// The core crystal clock as packets see it: CTC = (TSC - TSC at CTC 0) * EAX / EBX of CPUID 15H.
class CrystalClock {
 public:
  explicit CrystalClock(const GeneratorConfig& config) noexcept;

  [[nodiscard]] std::uint64_t ctc_at(std::uint64_t tsc) const noexcept;
  [[nodiscard]] std::uint64_t tsc_at(
      std::uint64_t ctc) const noexcept;  // the first TSC value at which CTC is `ctc`
  // TSC ticks since CTC last changed, as TMA tells it (9 bits; saturates where EBX / EAX is larger).
  [[nodiscard]] std::uint64_t fast_counter(std::uint64_t tsc) const noexcept;

 private:
  std::uint64_t numerator_;
  std::uint64_t denominator_;
  std::uint64_t origin_;
};

class Timing {
 public:
  explicit Timing(const GeneratorConfig& config) noexcept;

  // Cuts times that would go back to what they were.
  [[nodiscard]] Instant not_before_now(Instant at) const noexcept;
  // True if the way to `to` is long enough to have been a stop of the clocks (a sleep state).
  [[nodiscard]] bool is_stop(Instant to) const noexcept { return to.tsc - now_.tsc >= stop_ticks_; }
  // Moves to the next MTC on the way to `to` and returns its CTC byte; nothing if there is none.
  [[nodiscard]] std::optional<std::uint8_t> next_mtc(Instant to) noexcept;
  [[nodiscard]] std::uint64_t stop_ticks() const noexcept { return stop_ticks_; }
  [[nodiscard]] std::uint64_t next_mtc_tsc() noexcept;
  // True if next_mtc() would return one.
  [[nodiscard]] bool passes_mtc(Instant to) noexcept { return to.tsc >= next_mtc_tsc(); }
  void move_to(Instant to) noexcept { now_ = told_ = to; }

  // Cycles since the last CYC packet if one is due now (none: no time has passed, or less than the
  // threshold).
  [[nodiscard]] std::optional<std::uint64_t> take_cycles() noexcept { return take_cycles(now_.cycles); }
  // For an event when the count was `cycles`.
  [[nodiscard]] std::optional<std::uint64_t> take_cycles(std::uint64_t cycles) noexcept;
  void restart_cycles() noexcept { cycles_told_ = now_.cycles; }
  // Since the last CYC packet.
  [[nodiscard]] std::uint64_t cycles_untold() const noexcept { return now_.cycles - cycles_told_; }
  void set_cycles_untold(std::uint64_t cycles) noexcept { cycles_told_ = now_.cycles - cycles; }
  [[nodiscard]] std::uint64_t cyc_threshold() const noexcept { return threshold_; }

  [[nodiscard]] const Instant& now() const noexcept { return now_; }
  [[nodiscard]] const CrystalClock& crystal() const noexcept { return crystal_; }

 private:
  CrystalClock crystal_;
  Instant now_;
  Instant
      told_;  // the last one that is no MTC's: from there cycles are interpolated, so that nothing adds up
  std::uint64_t mtc_tsc_ = 0;     // the first MTC behind some earlier now_, at this time
  std::uint64_t mtc_number_ = 0;  // and its count of periods
  std::uint64_t cycles_told_ = 0;
  std::uint64_t stop_ticks_;
  std::uint64_t threshold_;
  std::uint8_t mtc_period_;
};

}  // namespace ptkit::trace_unit::generator
