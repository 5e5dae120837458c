#include <gtest/gtest.h>

#include "capture/linux/process/tsc_clock.h"
#include "trace/clock.h"

namespace ptkit::capture {
namespace {

class TscClockRate : public testing::TestWithParam<double> {};

TEST_P(TscClockRate, FitsIn32BitsAndIsExact) {
  trace::Clock clock;
  set_rate(clock, 1e9 / GetParam());
  ASSERT_GT(clock.time_mult, 0U);
  ASSERT_LE(clock.time_shift, 31U);
  const auto ns = trace::perf_ns_from_tsc(clock, static_cast<std::uint64_t>(GetParam()) * 1000);
  EXPECT_NEAR(static_cast<double>(ns), 1e12, 1e12 * 1e-8);
}

// A slow emulated machine, the frequencies around the limit of a 31-bit shift, and common frequencies.
INSTANTIATE_TEST_SUITE_P(Hertz, TscClockRate, testing::Values(50e6, 500e6, 500e6 + 1, 1e6, 2.4e9, 6e9));

}  // namespace
}  // namespace ptkit::capture
