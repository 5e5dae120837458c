#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tables/columns/memory/memory_pool.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

struct FakeClock {
  MemoryPool::Clock::time_point now = MemoryPool::Clock::now();
  std::shared_ptr<MemoryPool> pool(std::uint64_t most = UINT64_MAX) {
    return std::make_shared<MemoryPool>(most, [this] { return now; });
  }
};

TEST(MemoryPool, ReusesReleasedMemory) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}, 3 * kMiB}) {
    const auto pool = std::make_shared<MemoryPool>();
    auto memory = pool->take(size);
    ASSERT_NE(memory, nullptr);
    std::memset(memory.get(), 7, size);
    const void* const address = memory.get();
    memory.reset();
    EXPECT_GE(pool->idle_bytes(), size);
    memory = pool->take(size);
    EXPECT_EQ(memory.get(), address);
    EXPECT_EQ(pool->idle_bytes(), 0u);
  }
}

// Owners of a range expect that all its pages were written.
TEST(MemoryPool, BlocksWithUnwrittenPagesAreUsedForBlocksOnly) {
  const auto pool = std::make_shared<MemoryPool>();
  auto block = pool->take(4 * kMiB);
  ASSERT_NE(block, nullptr);
  std::memset(block.get(), 1, kMiB);
  const auto* const address = static_cast<std::uint8_t*>(block.get());
  block.reset();
  const PoolRange range = pool->take_range(4 * kMiB);
  ASSERT_NE(range.memory, nullptr);
  EXPECT_EQ(range.resident, 0u);
  EXPECT_NE(range.memory, address);
  EXPECT_EQ(pool->take(4 * kMiB).get(), address);
  pool->release(range, 0);
  EXPECT_EQ(pool->trim(0), 4 * kMiB);
  EXPECT_EQ(pool->idle_bytes(), 0u);
}

TEST(MemoryPool, SmallRangesAreNoHugePages) {
  const auto pool = std::make_shared<MemoryPool>();
  for (std::size_t size = 1; size < 3 * kMiB; size += 60'000) {
    const PoolRange range = pool->take_range(size);
    ASSERT_NE(range.memory, nullptr);
    EXPECT_GE(range.size, size);
    EXPECT_LT(range.size, size + (size < kMiB - base::kSmallUnit ? base::kSmallUnit : base::kHugePage));
    const auto address = reinterpret_cast<std::uintptr_t>(range.memory);
    EXPECT_TRUE(range.size < base::kLargeRange || (address | range.size) % base::kHugePage == 0);
    pool->release(range, range.size);
  }
}

TEST(MemoryPool, OwnersHaveSeparateMemory) {
  const auto pool = std::make_shared<MemoryPool>();
  for (int round = 0; round < 3; ++round) {
    std::vector<PoolRange> all;
    for (std::size_t i = 0; i < 40; ++i) {
      const std::size_t size = (i % 5 + 1) * (i % 2 == 0 ? kMiB / 8 : 2 * kMiB);
      all.push_back(pool->take_range(size));
      ASSERT_NE(all.back().memory, nullptr);
      std::memset(all.back().memory, static_cast<int>(i), all.back().size);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto* const bytes = all[i].memory;
      EXPECT_EQ(std::count(bytes, bytes + all[i].size, i), static_cast<std::ptrdiff_t>(all[i].size));
    }
    for (std::size_t i = 0; i < all.size(); ++i) pool->release(all[(i * 7) % all.size()], 0);
  }
}

TEST(MemoryPool, NeighboursBecomeOneRange) {
  const auto pool = std::make_shared<MemoryPool>();
  PoolRange whole = pool->take_range(8 * kMiB);
  std::memset(whole.memory, 1, whole.size);
  std::uint8_t* const memory = whole.memory;
  for (const std::size_t at : {std::size_t{4}, std::size_t{0}, std::size_t{6}, std::size_t{2}})
    pool->release({memory + at * kMiB, 2 * kMiB, 2 * kMiB}, 2 * kMiB);
  EXPECT_EQ(pool->idle_bytes(), 8 * kMiB);
  whole = pool->take_range(8 * kMiB);
  EXPECT_EQ(whole.memory, memory);
  EXPECT_EQ(whole.resident, 8 * kMiB);
  pool->release(whole, 0);
}

TEST(MemoryPool, BoundsIdleMemory) {
  FakeClock clock;
  const auto pool = clock.pool(64 * kMiB);
  std::vector<std::shared_ptr<void>> all;
  for (int i = 0; i < 20; ++i) all.push_back(pool->take(8 * kMiB));
  all.clear();
  EXPECT_LE(pool->idle_bytes(), 64 * kMiB);
  EXPECT_GT(pool->idle_bytes(), 50 * kMiB);
  pool->set_most_idle(10 * kMiB);
  EXPECT_LE(pool->idle_bytes(), 10 * kMiB);
  EXPECT_LE(pool->trim(0), 10 * kMiB);
  EXPECT_EQ(pool->idle_bytes(), 0u);
}

TEST(MemoryPool, GivesBackWhatWasIdleForLong) {
  FakeClock clock;
  const auto pool = clock.pool();
  pool->release(pool->take_range(8 * kMiB), 8 * kMiB);
  pool->release(pool->take_range(kMiB / 4), kMiB / 4);
  clock.now += MemoryPool::kIdleTime / 2;
  auto kept = pool->take(kMiB / 2);
  EXPECT_GT(pool->idle_bytes(), 8 * kMiB) << "not yet";
  clock.now += MemoryPool::kIdleTime;
  kept = pool->take(kMiB / 2);
  EXPECT_LE(pool->idle_bytes(), kMiB / 2) << "at the next call";
}

TEST(MemoryPool, OutlivesItsUsers) {
  auto pool = std::make_shared<MemoryPool>();
  auto memory = pool->take(kMiB);
  pool.reset();
  ASSERT_NE(memory, nullptr);
  auto* bytes = static_cast<std::uint8_t*>(memory.get());
  std::memset(bytes, 1, kMiB);
  EXPECT_EQ(std::count(bytes, bytes + kMiB, 1), static_cast<std::ptrdiff_t>(kMiB));
}

TEST(MemoryPool, ReportsOutOfMemory) {
  const auto pool = std::make_shared<MemoryPool>();
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 4 * kMiB, SIZE_MAX / 2}) {
    EXPECT_EQ(pool->take(size), nullptr);
    PoolRange range = pool->take_range(3 * kMiB);
    const PoolRange before = range;
    EXPECT_FALSE(pool->grow(range, size, kMiB));
    EXPECT_EQ(range.memory, before.memory);
    pool->release(range, 0);
  }
}

}  // namespace
}  // namespace ptkit::tables::columns
