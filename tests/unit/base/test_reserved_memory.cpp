// Memory that is taken part by part.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/system/reserved_memory.h"

namespace ptkit::base {
namespace {

constexpr std::size_t kSize = std::size_t{8} << 20U;

TEST(ReservedMemory, IsZeroUntilItIsWritten) {
  const ReservedMemory memory(kSize);
  ASSERT_TRUE(memory.good());
  ASSERT_EQ(memory.bytes().size(), kSize);
  EXPECT_EQ(std::ranges::count(memory.bytes(), 0), static_cast<std::ptrdiff_t>(kSize));
}

TEST(ReservedMemory, IsUsableAfterItsRelease) {
  ReservedMemory memory(kSize);
  ASSERT_TRUE(memory.good());
  std::ranges::fill(memory.bytes(), std::uint8_t{1});
  memory.release(0, kSize / 2);
  EXPECT_EQ(std::ranges::count(memory.bytes().last(kSize / 2), 1), static_cast<std::ptrdiff_t>(kSize / 2));
  std::ranges::fill(memory.bytes(), std::uint8_t{2});
  EXPECT_EQ(std::ranges::count(memory.bytes(), 2), static_cast<std::ptrdiff_t>(kSize));
}

TEST(ReservedMemory, SaysWhyThereIsNone) {
  const ReservedMemory memory(std::size_t{1} << 62U);
  EXPECT_FALSE(memory.good());
  EXPECT_FALSE(ReservedMemory::error().empty());
}

}  // namespace
}  // namespace ptkit::base
