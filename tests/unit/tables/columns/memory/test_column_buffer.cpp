#include <gtest/gtest.h>

#include "tables/columns/memory/column_buffer.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

std::uint8_t cell(std::size_t at) { return static_cast<std::uint8_t>(at * 31 + at / 4096); }

void write(ColumnBuffer& buffer, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end; ++at) buffer.data()[at] = cell(at);
}

bool has(const ColumnBuffer& buffer, std::size_t end) {
  for (std::size_t at = 0; at < end; ++at) {
    if (buffer.data()[at] != cell(at)) return false;
  }
  return true;
}

TEST(ColumnBuffer, ReportsOutOfMemory) {
  ColumnBuffer buffer;
  ASSERT_TRUE(buffer.reserve(100, 0));
  buffer.data()[99] = 7;
  EXPECT_FALSE(buffer.reserve(SIZE_MAX / 2, 100));
  EXPECT_EQ(buffer.data()[99], 7);
  EXPECT_GE(buffer.capacity(), 100u);
}

TEST(ColumnBuffer, GrowsInStepsNotByDoubling) {
  ColumnBuffer buffer;
  const std::size_t gigabyte = std::size_t{1} << 30;
  ASSERT_TRUE(buffer.reserve(gigabyte, 0));  // never touched, so never backed
  ASSERT_TRUE(buffer.reserve(gigabyte + 1, 0));
  EXPECT_LE(buffer.capacity(), gigabyte + ColumnBuffer::kLargestStep);
}

TEST(ColumnBuffer, KeepsItsBytesWhateverItsMemoryIs) {
  for (const std::size_t step : {100 * kMiB / 1024, 777 * kMiB / 1024, 3 * kMiB}) {
    ColumnBuffer buffer;
    std::size_t used = 0;
    for (int i = 0; i < 12; ++i) {
      ASSERT_TRUE(buffer.reserve(used + step, used));
      write(buffer, used, used + step);
      used += step;
    }
    EXPECT_TRUE(has(buffer, used)) << step;
    for (const std::size_t left :
         {used - 1, used / 2, 2 * kMiB, kMiB, kMiB - 1, kMiB / 2, std::size_t{9000}}) {
      if (left > used) continue;
      used = left;
      buffer.shrink_to(left);
      EXPECT_GE(buffer.capacity(), left);
      EXPECT_TRUE(has(buffer, left)) << step << " " << left;
    }
    EXPECT_LT(buffer.capacity(), 10000u) << "few cells do not keep a range";
  }
}

TEST(ColumnBuffer, TakesItsExpectedSizeAtOnce) {
  ColumnBuffer buffer;
  ASSERT_TRUE(buffer.reserve(3 * kMiB, 0, 50 * kMiB));
  const std::uint8_t* const memory = buffer.data();
  ASSERT_TRUE(buffer.reserve(50 * kMiB, 3 * kMiB, 60 * kMiB));
  EXPECT_EQ(buffer.data(), memory);
  write(buffer, 0, 3 * kMiB);
  ASSERT_TRUE(buffer.reserve(51 * kMiB, 3 * kMiB, 90 * kMiB));
  EXPECT_GE(buffer.capacity(), 90 * kMiB);
  EXPECT_TRUE(has(buffer, 3 * kMiB));
}

TEST(ColumnBuffer, DropsItsFrontAndKeepsTheRestAtItsAddress) {
  ColumnBuffer buffer;
  ASSERT_TRUE(buffer.reserve(9 * kMiB, 0));
  write(buffer, 0, 9 * kMiB);
  const std::uint8_t* const memory = buffer.data();
  const std::uint64_t idle = MemoryPool::of_process()->idle_bytes();
  buffer.drop_front(5 * kMiB);
  EXPECT_EQ(buffer.data(), memory);
  EXPECT_EQ(MemoryPool::of_process()->idle_bytes(), idle + 4 * kMiB);
  buffer.drop_front(5 * kMiB + 1);
  EXPECT_EQ(MemoryPool::of_process()->idle_bytes(), idle + 4 * kMiB);
  for (std::size_t at = 5 * kMiB; at < 9 * kMiB; ++at) ASSERT_EQ(memory[at], cell(at));
}

}  // namespace
}  // namespace ptkit::tables::columns
