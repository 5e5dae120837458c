// Converts TSC ticks to nanoseconds and back.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "time/track.h"
#include "trace/clock.h"

namespace ptkit::time {
namespace {

struct Wide {
  std::uint64_t high;
  std::uint64_t low;
};

Wide multiply(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kLow = 0xffffffff;
  const std::uint64_t low = (a & kLow) * (b & kLow);
  const std::uint64_t mid_a = (a >> 32) * (b & kLow) + (low >> 32);
  const std::uint64_t mid_b = (a & kLow) * (b >> 32) + (mid_a & kLow);
  return {(a >> 32) * (b >> 32) + (mid_a >> 32) + (mid_b >> 32), (mid_b << 32) | (low & kLow)};
}

// Low 64 bits of value >> shift.
std::uint64_t shift_right(Wide value, unsigned shift) noexcept {
  if (shift == 0) return value.low;
  if (shift >= 128) return 0;
  if (shift >= 64) return value.high >> (shift - 64);
  return value.high << (64 - shift) | value.low >> shift;
}

// Low 64 bits of value / divisor. Binary long division, exact for every divisor.
std::uint64_t divide(Wide value, std::uint64_t divisor) noexcept {
  std::uint64_t quotient = 0;
  std::uint64_t rest = 0;
  for (unsigned bit = 128; bit-- > 0;) {
    const bool carry = (rest >> 63) != 0;
    rest = rest << 1 | ((bit >= 64 ? value.high >> (bit - 64) : value.low >> bit) & 1);
    quotient <<= 1;
    if (carry || rest >= divisor) {
      rest -= divisor;
      quotient |= 1;
    }
  }
  return quotient;
}

std::uint64_t scale(std::uint64_t value, std::uint64_t factor, std::uint64_t divisor) noexcept {
  const Wide product = multiply(value, factor);
  return product.high == 0 ? product.low / divisor : divide(product, divisor);
}

}  // namespace

// perf: ns = time_zero + tsc * time_mult >> time_shift, in 128 bits, modulo 2^64. trace::perf_whole_tsc() is
// the inverse for a counter that wraps.
std::int64_t tsc_to_ns(const trace::Clock& clock, std::uint64_t tsc) noexcept {
  if (clock.perf_time_known) {
    const std::uint64_t whole = trace::perf_whole_tsc(clock, tsc);
    return static_cast<std::int64_t>(clock.time_zero +
                                     shift_right(multiply(whole, clock.time_mult), clock.time_shift));
  }
  if (clock.tsc_hz == 0) return 0;
  constexpr std::uint64_t kLast = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(scale(tsc, trace::kNsPerSecond, clock.tsc_hz), kLast));
}

std::uint64_t ns_to_tsc(const trace::Clock& clock, std::int64_t ns) noexcept {
  const auto time = static_cast<std::uint64_t>(ns);  // perf: modulo 2^64
  if (clock.perf_time_known) {
    if (clock.time_mult == 0 || clock.time_shift >= 64) return 0;
    return scale(time - clock.time_zero, std::uint64_t{1} << clock.time_shift, clock.time_mult);
  }
  if (clock.tsc_hz == 0) return 0;
  return ns < 0 ? 0 : scale(time, clock.tsc_hz, trace::kNsPerSecond);
}

}  // namespace ptkit::time
