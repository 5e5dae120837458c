#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "tables/columns/memory/idle_ranges.h"

namespace ptkit::tables::columns {
namespace {

using Time = IdleRanges::Time;

// Addresses only: no test touches the memory.
std::uint8_t* at(std::uintptr_t address) { return reinterpret_cast<std::uint8_t*>(address); }
Time after(int seconds) { return Time{} + std::chrono::seconds(seconds); }

TEST(IdleRanges, TakesFromTheSmallestRangeThatIsLargeEnough) {
  IdleRanges ranges;
  ASSERT_TRUE(ranges.add(at(0x10000), 0x4000, after(1)));
  ASSERT_TRUE(ranges.add(at(0x20000), 0x2000, after(2)));
  ASSERT_TRUE(ranges.add(at(0x30000), 0x1000, after(3)));
  EXPECT_EQ(ranges.take(0x1800), at(0x20000));
  EXPECT_EQ(ranges.take(0x800), at(0x21800));  // what is left of it
  EXPECT_EQ(ranges.take(0x5000), nullptr);
  EXPECT_EQ(ranges.bytes(), 0x5000u);
}

TEST(IdleRanges, NeighboursBecomeOneRange) {
  IdleRanges ranges;
  ASSERT_TRUE(ranges.add(at(0x1000), 0x1000, after(1)));
  ASSERT_TRUE(ranges.add(at(0x3000), 0x1000, after(2)));
  EXPECT_EQ(ranges.take(0x3000), nullptr);
  ASSERT_TRUE(ranges.add(at(0x2000), 0x1000, after(3)));  // joins both
  ASSERT_TRUE(ranges.add(at(0x800), 0x800, after(4)));    // joins the one behind it
  EXPECT_EQ(ranges.oldest()->memory, at(0x800));
  EXPECT_EQ(ranges.oldest()->since, after(4));
  EXPECT_EQ(ranges.take(0x3800), at(0x800));
  EXPECT_TRUE(ranges.empty());
  EXPECT_FALSE(ranges.oldest());
}

TEST(IdleRanges, EndsOfTheLargestAndOfTheOldestRange) {
  IdleRanges ranges;
  ASSERT_TRUE(ranges.add(at(0x10000), 0x1000, after(1)));
  ASSERT_TRUE(ranges.add(at(0x20000), 0x3000, after(2)));
  const auto largest = ranges.take_from_largest(0x1000);
  EXPECT_EQ(largest.memory, at(0x22000));
  EXPECT_EQ(largest.size, 0x1000u);
  const auto oldest = ranges.take_from_oldest(0x9000);
  EXPECT_EQ(oldest.memory, at(0x10000));
  EXPECT_EQ(oldest.size, 0x1000u);
  EXPECT_EQ(oldest.since, after(1));
  EXPECT_EQ(ranges.bytes(), 0x2000u);
}

// Every byte is either idle or taken, and never both.
TEST(IdleRanges, RandomOperationsLoseNoByte) {
  constexpr std::size_t kUnit = 0x1000;
  std::mt19937 random(7);
  IdleRanges ranges;
  std::map<std::uintptr_t, std::size_t> taken{{0x100000, 512 * kUnit}};
  std::uint64_t idle = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::size_t size = (1 + random() % 8) * kUnit;
    std::uint8_t* memory = nullptr;
    std::size_t got = size;
    switch (random() % 4) {
      case 0:
        memory = ranges.take(size);
        break;
      case 1:
        if (ranges.empty()) break;
        std::tie(memory, got) = [&] {
          const auto range =
              random() % 2 == 0 ? ranges.take_from_largest(size) : ranges.take_from_oldest(size);
          return std::pair(range.memory, range.size);
        }();
        break;
      default: {  // some of the taken memory becomes idle
        if (taken.empty()) break;
        const auto node = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
        const std::size_t part = std::min(size, node->second);
        const std::uintptr_t address = node->first;
        const std::size_t rest = node->second - part;
        taken.erase(node);
        if (rest != 0) taken[address + part] = rest;
        ASSERT_TRUE(ranges.add(at(address), part, after(step)));
        idle += part;
        continue;
      }
    }
    if (memory == nullptr) continue;
    idle -= got;
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const auto next = taken.lower_bound(address);
    ASSERT_TRUE(next == taken.end() || address + got <= next->first);
    ASSERT_TRUE(next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= address);
    taken[address] = got;
    ASSERT_EQ(ranges.bytes(), idle);
  }
}

}  // namespace
}  // namespace ptkit::tables::columns
