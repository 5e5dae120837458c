#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "base/interval_map.h"
#include "unit/support/seconds.h"

namespace ptkit::base {
namespace {

constexpr std::uint64_t kLast = ~std::uint64_t{0};

TEST(IntervalMap, LaterRangesReplaceEarlierOnes) {
  std::mt19937_64 random(5);
  for (const std::uint64_t base : {std::uint64_t{0}, kLast - 31}) {
    for (int round = 0; round < 200; ++round) {
      IntervalMap<int> map;
      std::array<std::optional<int>, 32> expected;
      for (int i = 0; i < 10; ++i) {
        const std::uint64_t first = random() % 32;
        const std::uint64_t last = first + random() % (32 - first);
        map.assign(base + first, base + last, i);
        for (std::uint64_t at = first; at <= last; ++at) expected[at] = i;
      }
      for (std::uint64_t at = 0; at < 32; ++at) {
        const auto found = map.find(base + at);
        ASSERT_EQ(found != map.end(), expected[at].has_value());
        if (!expected[at]) continue;
        EXPECT_EQ(found->second.value, *expected[at]);
      }
      for (std::uint64_t first = 0; first < 32; ++first) {
        const std::uint64_t last = first + random() % (32 - first);
        std::set<int> over;
        map.for_each_over(base + first, base + last, [&](int value) { over.insert(value); });
        std::set<int> expected_over;
        for (std::uint64_t at = first; at <= last; ++at) {
          if (expected[at]) expected_over.insert(*expected[at]);
        }
        EXPECT_EQ(over, expected_over);
      }
      for (std::uint64_t first = 0; first < 32; ++first) {
        const std::uint64_t last = first + random() % (32 - first);
        const bool covered = std::all_of(expected.begin() + static_cast<std::ptrdiff_t>(first),
                                         expected.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                                         [](const auto& value) { return value.has_value(); });
        EXPECT_EQ(map.covers(base + first, base + last), covered) << first << " to " << last;
      }
      std::uint64_t next = 0;
      for (const auto& [first, entry] : map) {
        EXPECT_LE(next, first);
        EXPECT_LE(first, entry.last);
        next = entry.last + 1;
      }
    }
  }
}

// The first of overlapping ranges is found if the last one is assigned first.
TEST(IntervalMap, FindsTheFirstRange) {
  struct Range {
    std::uint64_t first;
    std::uint64_t size;
  };
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Range> ranges;
    for (std::size_t i = random() % 12; i > 0; --i) ranges.push_back({random() % 40, random() % 12});
    IntervalMap<std::size_t> map;
    for (std::size_t i = ranges.size(); i-- > 0;) map.assign_size(ranges[i].first, ranges[i].size, i);
    for (std::uint64_t value = 0; value < 52; ++value) {
      std::size_t expected = 0;
      while (expected < ranges.size() && value - ranges[expected].first >= ranges[expected].size) ++expected;
      const auto found = map.find(value);
      EXPECT_EQ(found == map.end() ? ranges.size() : found->second.value, expected);
    }
  }
}

TEST(IntervalMap, ManyRangesTakeLessThanQuadraticTime) {
  const auto seconds = ptkit::test::seconds_of([] {
    IntervalMap<std::uint64_t> map;
    for (std::uint64_t i = 100'000; i-- > 0;) map.assign_size(4 * i, i % 2 == 0 ? 2U : 1'000'000U, i);
    for (std::uint64_t i = 0; i < 100'000; ++i) EXPECT_EQ(map.find(4 * i + 3) != map.end(), i != 0);
  });
  EXPECT_LT(seconds, 5.0);
}

TEST(IntervalMap, SizesEndWithTheAddressSpace) {
  IntervalMap<int> map;
  map.assign_size(kLast - 3, 100, 1);
  map.assign_size(kLast - 1, 0, 2);
  EXPECT_EQ(map.find(kLast)->second.value, 1);
  EXPECT_EQ(map.find(kLast - 1)->second.value, 1);
  EXPECT_EQ(map.find(kLast - 4), map.end());
  EXPECT_TRUE(map.covers(kLast - 3, kLast));
  EXPECT_FALSE(map.covers(kLast - 4, kLast));
}

// Ranges that are covered again and again by one that is assigned each time.
TEST(IntervalMap, CoveredRangesTakeLessThanQuadraticTime) {
  const auto seconds = ptkit::test::seconds_of([] {
    IntervalMap<bool> map;
    for (std::uint64_t i = 0; i < 100'000; ++i) map.assign_size(i, 1, true);
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      ASSERT_TRUE(map.covers(0, 99'999));
      map.assign(0, 99'999, true);
    }
  });
  EXPECT_LT(seconds, 5.0);
}

}  // namespace
}  // namespace ptkit::base
