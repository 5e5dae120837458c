#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/system/memory_range.h"

namespace ptkit::base {
namespace {

bool is_filled(const std::uint8_t* memory, std::size_t bytes, int with) {
  return std::all_of(memory, memory + bytes, [&](std::uint8_t one) { return one == with; });
}

TEST(MemoryRange, IsCleared) {
  for (const std::size_t size : {kSmallUnit, 5 * kSmallUnit, kHugePage, 3 * kHugePage}) {
    std::uint8_t* const memory = map_range(size);
    ASSERT_NE(memory, nullptr);
    EXPECT_TRUE(is_filled(memory, size, 0));
    std::memset(memory, 1, size);
    unmap_range(memory, size);
  }
}

TEST(MemoryRange, LargeOnesAreAlignedToHugePages) {
  std::uint8_t* const memory = map_range(kHugePage);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % kHugePage, 0U);
  unmap_range(memory, kHugePage);
}

TEST(MemoryRange, IsUnmappedInParts) {
  std::uint8_t* const memory = map_range(4 * kHugePage);
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 7, 4 * kHugePage);
  unmap_range(memory + kHugePage, 2 * kHugePage);
  EXPECT_TRUE(is_filled(memory, kHugePage, 7));
  EXPECT_TRUE(is_filled(memory + 3 * kHugePage, kHugePage, 7));
  unmap_range(memory + 3 * kHugePage, kHugePage);
  unmap_range(memory, kHugePage);
}

TEST(MemoryRange, MovesOrStays) {
  std::uint8_t* const from = map_range(2 * kHugePage);
  std::uint8_t* const to = map_range(2 * kHugePage);
  ASSERT_TRUE(from != nullptr && to != nullptr);
  std::memset(from, 7, 2 * kHugePage);
  std::size_t moved = 0;
  EXPECT_EQ(move_range(from, 2 * kHugePage, to, moved), can_move_pages());
  EXPECT_EQ(moved, can_move_pages() ? 2 * kHugePage : 0U);
  if (!can_move_pages()) {
    EXPECT_TRUE(is_filled(from, 2 * kHugePage, 7));
    unmap_range(from, 2 * kHugePage);
  }
  EXPECT_TRUE(is_filled(to, 2 * kHugePage, can_move_pages() ? 7 : 0));
  unmap_range(to, 2 * kHugePage);
}

TEST(MemoryRange, IsNullWithoutAddressSpace) {
  EXPECT_EQ(map_range(range_size(SIZE_MAX / 4)), nullptr);
  EXPECT_EQ(range_size(SIZE_MAX), 0U);
}

}  // namespace
}  // namespace ptkit::base
