#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "columns/memory/memory_pool.h"

namespace ptkit::columns {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

// Pages that are in memory.
std::size_t resident_pages(std::uint8_t* memory, std::size_t bytes) {
  std::vector<unsigned char> found(bytes / 4096);
  EXPECT_EQ(::mincore(memory, bytes, found.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(found.begin(), found.end(), [](unsigned char one) { return one & 1; }));
}

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
    EXPECT_LT(range.size, size + (size < kMiB - kSmallUnit ? kSmallUnit : kHugePage));
    const auto address = reinterpret_cast<std::uintptr_t>(range.memory);
    EXPECT_TRUE(range.size < kLargeRange || (address | range.size) % kHugePage == 0);
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

TEST(MemoryPool, MakesALargeRangeOfSeveralIdleOnes) {
  const auto pool = std::make_shared<MemoryPool>();
  std::vector<PoolRange> all;
  for (int i = 0; i < 8; ++i) all.push_back(pool->take_range(4 * kMiB));
  for (PoolRange& range : all) std::memset(range.memory, 1, range.size);
  for (int i = 0; i < 8; i += 2) pool->release(all[static_cast<std::size_t>(i)], 4 * kMiB);
  PoolRange large = pool->take_range(20 * kMiB);
  EXPECT_EQ(large.resident, 16 * kMiB);
  EXPECT_EQ(pool->idle_bytes(), 0u);
  EXPECT_GE(resident_pages(large.memory, 16 * kMiB), 16 * kMiB / 4096) << "pages moved, and are not fresh";
  std::memset(large.memory, 2, large.size);
  for (int i = 1; i < 8; i += 2) {
    const PoolRange& range = all[static_cast<std::size_t>(i)];
    EXPECT_EQ(std::count(range.memory, range.memory + range.size, 1),
              static_cast<std::ptrdiff_t>(range.size));
    pool->release(range, range.size);
  }
  EXPECT_TRUE(pool->grow(large, 40 * kMiB, 20 * kMiB));
  EXPECT_EQ(std::count(large.memory, large.memory + 20 * kMiB, 2), static_cast<std::ptrdiff_t>(20 * kMiB));
  EXPECT_EQ(large.resident, 36 * kMiB);
  pool->shrink(large, 3 * kMiB);
  EXPECT_EQ(large.size, 4 * kMiB);
  EXPECT_EQ(pool->idle_bytes(), 32 * kMiB);
  pool->release(large, 3 * kMiB);
  EXPECT_EQ(pool->idle_bytes(), 36 * kMiB);
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

// A child of fork() has one thread, whatever the others held.
TEST(MemoryPool, WorksAfterForkWhileThreadsUseIt) {
  const auto& pool = MemoryPool::of_process();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!stop) pool->release(pool->take_range(kMiB / 4), kMiB / 4);
    });
  for (int i = 0; i < 30; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      const PoolRange range = pool->take_range(4 * kMiB);
      if (range.memory == nullptr) ::_exit(2);
      std::memset(range.memory, 1, range.size);
      pool->release(range, range.size);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ptkit::columns
