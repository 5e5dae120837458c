// The pool where the system moves pages, and where processes fork.
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

#include "tables/columns/memory/memory_pool.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

// Pages that are in memory.
std::size_t resident_pages(std::uint8_t* memory, std::size_t bytes) {
  std::vector<unsigned char> found(bytes / 4096);
  EXPECT_EQ(::mincore(memory, bytes, found.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(found.begin(), found.end(), [](unsigned char one) { return one & 1; }));
}

TEST(MemoryPoolPages, MakesALargeRangeOfSeveralIdleOnes) {
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

// A child of fork() has one thread, whatever the others held.
TEST(MemoryPoolPages, WorkAfterForkWhileThreadsUseThem) {
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
}  // namespace ptkit::tables::columns
