#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "columns/memory_pool.h"

namespace ptkit::columns {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

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
    memory.reset();
    memory = pool->take(10 * kMiB);
    EXPECT_NE(memory.get(), address) << "too small a block";
    EXPECT_EQ(pool->take(size).get(), address);
    memory.reset();
    memory = pool->take(kMiB / 16);
    EXPECT_GT(pool->idle_bytes(), 10 * kMiB - 1) << "too large a block";
  }
}

TEST(MemoryPool, OwnersHaveSeparateMemory) {
  const auto pool = std::make_shared<MemoryPool>();
  std::vector<std::shared_ptr<void>> all;
  for (std::size_t i = 0; i < 8; ++i) {
    all.push_back(pool->take(2 * kMiB));
    ASSERT_NE(all.back(), nullptr);
    std::memset(all.back().get(), static_cast<int>(i), 2 * kMiB);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* const bytes = static_cast<const std::uint8_t*>(all[i].get());
    EXPECT_EQ(bytes[0], i);
    EXPECT_EQ(bytes[2 * kMiB - 1], i);
  }
}

TEST(MemoryPool, BoundsIdleMemory) {
  const auto pool = std::make_shared<MemoryPool>();
  std::vector<std::shared_ptr<void>> all;
  for (int i = 0; i < 20; ++i) all.push_back(pool->take(8 * kMiB));
  all.clear();
  EXPECT_LE(pool->idle_bytes(), MemoryPool::kMostIdle);
  EXPECT_GT(pool->idle_bytes(), 0u);
  static_cast<void>(pool->take(MemoryPool::kMostIdle * 2));
  EXPECT_LE(pool->idle_bytes(), MemoryPool::kMostIdle);
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
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 4 * kMiB, SIZE_MAX / 2})
    EXPECT_EQ(pool->take(size), nullptr);
}

}  // namespace
}  // namespace ptkit::columns
