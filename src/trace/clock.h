// The conversion between TSC and nanoseconds that perf_event_mmap_page describes (time_mult, time_shift,
// time_zero).
#pragma once

#include "trace/bundle.h"

namespace ptkit::trace {

// Both need clock.perf_time_known, with time_mult > 0 and time_shift < 64; arithmetic is modulo 2^64 as
// perf's is.
[[nodiscard]] constexpr std::uint64_t perf_ns_from_tsc(const Clock& clock, std::uint64_t tsc) noexcept {
  const std::uint64_t mask = (std::uint64_t{1} << clock.time_shift) - 1;
  return clock.time_zero + (tsc >> clock.time_shift) * clock.time_mult +
         (((tsc & mask) * clock.time_mult) >> clock.time_shift);
}

[[nodiscard]] constexpr std::uint64_t perf_tsc_from_ns(const Clock& clock, std::uint64_t ns) noexcept {
  const std::uint64_t since = ns - clock.time_zero;
  return ((since / clock.time_mult) << clock.time_shift) +
         ((since % clock.time_mult) << clock.time_shift) / clock.time_mult;
}

}  // namespace ptkit::trace
