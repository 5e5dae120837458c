// Ranges of addresses: the first that has a value.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "formats/first_range.h"
#include "seconds.h"

namespace ptkit::formats {
namespace {

constexpr std::uint64_t kLast = ~std::uint64_t{0};

TEST(FirstRange, IsTheFirstThatIsGiven) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Range> ranges;
    std::vector<std::uint64_t> values;
    for (std::size_t i = random() % 12; i > 0; --i) ranges.push_back({random() % 40, random() % 12});
    for (std::size_t i = random() % 30; i > 0; --i) values.push_back(random() % 50);
    const std::vector<std::size_t> found = first_ranges(ranges, values);
    ASSERT_EQ(found.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::size_t expected = 0;
      while (expected < ranges.size() && values[i] - ranges[expected].begin >= ranges[expected].size)
        ++expected;
      EXPECT_EQ(found[i], expected < ranges.size() ? expected : kNoRange);
    }
  }
}

TEST(FirstRange, MayEndWithTheAddressSpace) {
  const std::array<Range, 2> ranges{Range{kLast - 3, 4}, Range{kLast - 10, 100}};
  const std::array<std::uint64_t, 4> values{kLast, kLast - 3, kLast - 4, 0};
  EXPECT_EQ(first_ranges(ranges, values), (std::vector<std::size_t>{0, 0, 1, kNoRange}));
}

TEST(FirstRange, ManyOfBoth) {
  std::vector<Range> ranges;
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    ranges.push_back({4 * i, i % 2 == 0 ? 2U : 1'000'000U});
    values.push_back(4 * i + 3);
  }
  EXPECT_LT(test::seconds_of([&] { EXPECT_EQ(first_ranges(ranges, values)[0], kNoRange); }), 5.0);
}

}  // namespace
}  // namespace ptkit::formats
