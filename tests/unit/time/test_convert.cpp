// TSC ticks to nanoseconds and back.
#include <gtest/gtest.h>

#include "time/track.h"
#include "trace/clock.h"

namespace ptkit::time {
namespace {

trace::Clock perf_clock() {
  trace::Clock clock;
  clock.perf_time_known = true;
  clock.time_shift = 10;
  clock.time_mult = 343;  // some 2.99 GHz
  clock.time_zero = 1'000;
  return clock;
}

TEST(Convert, PerfFormula) {
  const trace::Clock clock = perf_clock();
  EXPECT_EQ(tsc_to_ns(clock, 0), 1'000);
  EXPECT_EQ(tsc_to_ns(clock, 1024), 1'343);
  EXPECT_EQ(tsc_to_ns(clock, 1025), 1'343);
  EXPECT_EQ(tsc_to_ns(clock, 3'000'000), 1'000 + 3'000'000LL * 343 / 1024);
  EXPECT_EQ(ns_to_tsc(clock, 1'343), 1024U);
}

TEST(Convert, ProductsBeyond64Bits) {
  trace::Clock clock = perf_clock();
  clock.time_shift = 31;
  clock.time_mult = 1'431'655'765;
  // 2^55 * mult / 2^31 = 2^24 * mult
  EXPECT_EQ(tsc_to_ns(clock, std::uint64_t{1} << 55), 1'000 + (std::int64_t{1} << 24) * 1'431'655'765);
  const std::uint64_t tsc = 40'000'000'000'000'000;
  const std::uint64_t back = ns_to_tsc(clock, tsc_to_ns(clock, tsc));
  EXPECT_LE(back, tsc);
  EXPECT_LT(tsc - back, 4U);  // a nanosecond is 1.5 ticks
}

TEST(Convert, NegativeTimeZero) {
  trace::Clock clock = perf_clock();
  clock.time_zero = static_cast<std::uint64_t>(-5'000'000'000);
  EXPECT_EQ(tsc_to_ns(clock, 1024), -5'000'000'000 + 343);
  EXPECT_EQ(ns_to_tsc(clock, -5'000'000'000 + 343), 1024U);
}

// uapi/linux/perf_event.h, cap_user_time_short: cyc = time_cycles + ((cyc - time_cycles) & time_mask).
TEST(Convert, WrappingCounters) {
  trace::Clock clock = perf_clock();
  clock.time_mult = 512;  // half a nanosecond
  clock.time_cycles = 0x5'0000'fff0;
  clock.time_mask = 0xffff'ffff;
  EXPECT_EQ(tsc_to_ns(clock, 0xfff0), 1'000 + 0x5'0000'fff0 / 2);
  EXPECT_EQ(tsc_to_ns(clock, 0x1'0000), 1'000 + 0x5'0001'0000 / 2);
  EXPECT_EQ(tsc_to_ns(clock, 0xffee), 1'000 + 0x6'0000'ffee / 2);  // before time_cycles: a round later
  EXPECT_EQ(tsc_to_ns(clock, 0x5'0001'0000), 1'000 + 0x5'0001'0000 / 2);
  EXPECT_EQ(ns_to_tsc(clock, 1'000 + 0x6'0000'ffee / 2), 0x6'0000'ffeeU);
  for (const std::uint64_t tsc : {0x5'0000'fff0U, 0x5'ffff'fffeU, 0x6'0000'ffeeU}) {
    EXPECT_EQ(ns_to_tsc(clock, tsc_to_ns(clock, tsc & clock.time_mask)), tsc);
    EXPECT_EQ(trace::perf_tsc_from_ns(clock, trace::perf_ns_from_tsc(clock, tsc & clock.time_mask)), tsc);
  }
}

TEST(Convert, CpuidFrequency) {
  trace::Clock clock;
  clock.tsc_hz = 2'904'000'000;
  EXPECT_EQ(tsc_to_ns(clock, 2'904'000'000), 1'000'000'000);
  EXPECT_EQ(tsc_to_ns(clock, std::uint64_t{2'904'000'000} * 10'000'000), 10'000'000'000'000'000);
  EXPECT_EQ(ns_to_tsc(clock, 10'000'000'000'000'000), std::uint64_t{2'904'000'000} * 10'000'000);
  EXPECT_EQ(ns_to_tsc(clock, -1), 0U);
}

TEST(Convert, Unknown) {
  EXPECT_EQ(tsc_to_ns({}, 12345), 0);
  EXPECT_EQ(ns_to_tsc({}, 12345), 0U);
  trace::Clock clock = perf_clock();
  clock.time_mult = 0;
  EXPECT_EQ(ns_to_tsc(clock, 12345), 0U);
  clock.time_shift = 200;
  EXPECT_EQ(tsc_to_ns(clock, 12345), 1'000);
}

}  // namespace
}  // namespace ptkit::time
