#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <set>

#include "base/interval_map.h"

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
      std::uint64_t next = 0;
      for (const auto& [first, entry] : map) {
        EXPECT_LE(next, first);
        EXPECT_LE(first, entry.last);
        next = entry.last + 1;
      }
    }
  }
}

}  // namespace
}  // namespace ptkit::base
