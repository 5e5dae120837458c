// The conversion between TSC and nanoseconds that perf_event_mmap_page describes (time_mult, time_shift,
// time_zero; time_cycles and time_mask of counters that wrap).
#pragma once

#include "trace/bundle.h"

namespace ptkit::trace {

inline constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

// Extends the value of a wrapping counter to 64 bits: the result is less than one period after time_cycles.
[[nodiscard]] constexpr std::uint64_t perf_whole_tsc(const Clock& clock, std::uint64_t tsc) noexcept {
  if (clock.time_mask == 0) return tsc;
  return clock.time_cycles + ((tsc - clock.time_cycles) & clock.time_mask);
}

// Both need clock.perf_time_known, with time_mult > 0 and time_shift < 64; arithmetic is modulo 2^64 as
// perf's is.
[[nodiscard]] constexpr std::uint64_t perf_ns_from_tsc(const Clock& clock, std::uint64_t tsc) noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << clock.time_shift) - 1;
  const std::uint64_t whole = perf_whole_tsc(clock, tsc);
  return clock.time_zero + (whole >> clock.time_shift) * clock.time_mult +
         (((whole & mask) * clock.time_mult) >> clock.time_shift);
}

// For a wrapping counter, the result is a perf_whole_tsc() value.
[[nodiscard]] constexpr std::uint64_t perf_tsc_from_ns(const Clock& clock, std::uint64_t ns) noexcept {
  const std::uint64_t since = ns - clock.time_zero;
  return ((since / clock.time_mult) << clock.time_shift) +
         ((since % clock.time_mult) << clock.time_shift) / clock.time_mult;
}

}  // namespace ptkit::trace
