#include <gtest/gtest.h>

#include "capture/tsc.h"
#include "trace/clock.h"

namespace ptkit::capture {
namespace {

class Rate : public testing::TestWithParam<double> {};

TEST_P(Rate, FitsAndIsExact) {
  trace::Clock clock;
  set_rate(clock, 1e9 / GetParam());
  ASSERT_GT(clock.time_mult, 0U);
  ASSERT_LE(clock.time_shift, 31U);
  const auto ns = trace::perf_ns_from_tsc(clock, static_cast<std::uint64_t>(GetParam()) * 1000);
  EXPECT_NEAR(static_cast<double>(ns), 1e12, 1e12 * 1e-8);
}

// An emulated machine's, the slowest where 31 bits of shift still fit, one below; usual ones.
INSTANTIATE_TEST_SUITE_P(Hertz, Rate, testing::Values(50e6, 500e6, 500e6 + 1, 1e6, 2.4e9, 6e9));

}  // namespace
}  // namespace ptkit::capture
