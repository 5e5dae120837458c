#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "common/pt_ops.h"
#include "common/pt_topa.h"

namespace {

TEST(SingleRange, TakesPowersOfTwoThatAreAligned) {
  pt_output output{};
  for (std::uint64_t bytes = 128; bytes <= std::uint64_t{1} << 32; bytes *= 2) {
    ASSERT_EQ(pt_single_range(3 * bytes, bytes, &output), 0) << bytes;
    EXPECT_EQ(output.base, 3 * bytes);
    EXPECT_EQ(output.mask_ptrs, bytes - 1);
    EXPECT_EQ(pt_single_range(3 * bytes + bytes / 2, bytes, &output), PT_E_INVALID);
    EXPECT_EQ(pt_single_range(0, bytes + 128, &output), bytes == 128 ? 0 : PT_E_INVALID);
  }
  EXPECT_EQ(pt_single_range(0, 64, &output), PT_E_INVALID);
  EXPECT_EQ(pt_single_range(0, 0, &output), PT_E_INVALID);
  EXPECT_EQ(pt_single_range(0, std::uint64_t{1} << 33, &output), PT_E_INVALID);
  EXPECT_EQ(pt_single_position(0xabcd'0000'0fffULL), 0xabcdU);
}

TEST(Between, CountsAroundTheEnd) {
  EXPECT_EQ(pt_bytes_between(1000, 10, 30), 20U);
  EXPECT_EQ(pt_bytes_between(1000, 990, 10), 20U);
  EXPECT_EQ(pt_bytes_between(1000, 10, 10), 0U);
  EXPECT_EQ(pt_bytes_between(1000, 1000, 5), 5U);  // left at the end of a region with STOP
}

TEST(Cursor, FollowsAWriterThatWraps) {
  std::mt19937_64 random(1);
  for (const std::uint64_t size : {128ULL, 4096ULL, 12288ULL}) {
    std::uint64_t written = 0;
    pt_cursor cursor{};
    for (int turn = 0; turn < 2000; ++turn) {
      const std::uint64_t step = random() % (2 * size);
      const std::uint64_t turns = (written % size + step) / size;
      written += step;
      pt_cursor_move(&cursor, size, written % size, turns);
      ASSERT_EQ(cursor.total, written);
      ASSERT_EQ(cursor.position, written % size);
    }
  }
}

// Pieces against a ring that is written byte by byte.
TEST(Parts, AreTheNewestBytesInOrder) {
  std::mt19937_64 random(2);
  for (int turn = 0; turn < 500; ++turn) {
    const std::uint64_t size = 1 + random() % 40;
    std::vector<std::uint64_t> ring(size);
    const std::uint64_t written = size + random() % 100;
    for (std::uint64_t i = 0; i < written; ++i) ring[i % size] = i;
    const std::uint64_t wanted = random() % (size + 10);
    pt_part parts[2];
    const std::uint32_t count = pt_newest_parts(size, written % size, wanted, parts);
    std::vector<std::uint64_t> found;
    for (std::uint32_t i = 0; i < count; ++i) {
      ASSERT_GT(parts[i].bytes, 0U);
      for (std::uint64_t k = 0; k < parts[i].bytes; ++k) found.push_back(ring.at(parts[i].offset + k));
    }
    ASSERT_EQ(found.size(), std::min(wanted, size));
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], written - found.size() + i);
  }
}

}  // namespace
