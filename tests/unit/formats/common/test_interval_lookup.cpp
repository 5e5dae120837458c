// Finds the first interval that contains a value.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "formats/common/interval_lookup.h"
#include "unit/support/seconds.h"

namespace ptkit::formats {
namespace {

constexpr std::uint64_t kLast = ~std::uint64_t{0};

TEST(IntervalLookup, FindsTheFirstInterval) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> ranges;
    std::vector<std::uint64_t> values;
    for (std::size_t i = random() % 12; i > 0; --i) ranges.push_back({random() % 40, random() % 12});
    for (std::size_t i = random() % 30; i > 0; --i) values.push_back(random() % 50);
    const std::vector<std::size_t> found = lookup_intervals(ranges, values);
    ASSERT_EQ(found.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::size_t expected = 0;
      while (expected < ranges.size() && values[i] - ranges[expected].begin >= ranges[expected].size)
        ++expected;
      EXPECT_EQ(found[i], expected < ranges.size() ? expected : kNoInterval);
    }
  }
}

TEST(IntervalLookup, AcceptsIntervalsUpToTheEndOfTheAddressSpace) {
  const std::array<Interval, 2> ranges{Interval{kLast - 3, 4}, Interval{kLast - 10, 100}};
  const std::array<std::uint64_t, 4> values{kLast, kLast - 3, kLast - 4, 0};
  EXPECT_EQ(lookup_intervals(ranges, values), (std::vector<std::size_t>{0, 0, 1, kNoInterval}));
}

TEST(IntervalLookup, TakesLessThanQuadraticTime) {
  std::vector<Interval> ranges;
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    ranges.push_back({4 * i, i % 2 == 0 ? 2U : 1'000'000U});
    values.push_back(4 * i + 3);
  }
  EXPECT_LT(ptkit::test::seconds_of([&] { EXPECT_EQ(lookup_intervals(ranges, values)[0], kNoInterval); }),
            5.0);
}

}  // namespace
}  // namespace ptkit::formats
