// Modules of memory that has code of no file.
#include <gtest/gtest.h>

#include <limits>

#include "code/symbol/anon_memory.h"

namespace ptkit::code::symbol {
namespace {

constexpr std::uint64_t kLastPage = std::numeric_limits<std::uint64_t>::max() - 0xfff;

trace::TraceBundle bundle_of(
    std::initializer_list<std::tuple<trace::SpaceId, std::uint64_t, std::uint64_t>> all,
    std::int32_t file = -1) {
  trace::TraceBundle bundle;
  for (const auto& [space, address, size] : all) {
    trace::CodeRegion& region = bundle.code.emplace_back();
    region.space = space;
    region.address = address;
    region.size = size;
    region.file = file;
  }
  return bundle;
}

TEST(AnonMemory, JoinsAdjacentRegionsOfASpace) {
  const AnonMemory memory(
      bundle_of({{1, 0x2000, 0x1000}, {1, 0x1000, 0x1000}, {2, 0x3000, 0x10}, {1, 0x1800, 8}}));
  ASSERT_EQ(memory.modules().size(), 2U);
  EXPECT_EQ(memory.modules()[0].base, 0x1000U);
  EXPECT_EQ(memory.modules()[0].last, 0x2fffU);
  EXPECT_EQ(memory.modules()[0].name(), "[anon 0x1000]");
  EXPECT_EQ(memory.modules()[1].space, 2U);
}

TEST(AnonMemory, FindsThatOfTheSpaceBeforeThatOfAll) {
  const AnonMemory memory(bundle_of({{trace::kAnySpace, 0x1000, 0x3000}, {1, 0x2000, 0x1000}}));
  EXPECT_EQ(memory.find(1, 0x2000), 1U);
  EXPECT_EQ(memory.find(1, 0x1fff), 0U);
  EXPECT_EQ(memory.find(2, 0x2000), 0U);
  EXPECT_EQ(memory.find(1, 0x4000), std::nullopt);
  EXPECT_EQ(memory.find(1, 0xfff), std::nullopt);
}

TEST(AnonMemory, EndsWithTheAddressSpace) {
  const AnonMemory memory(bundle_of({{1, kLastPage, 0x8000}}));
  EXPECT_EQ(memory.modules()[0].last, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(memory.find(1, std::numeric_limits<std::uint64_t>::max()), 0U);
}

TEST(AnonMemory, LeavesOutFilesAndEmptyRegions) {
  EXPECT_TRUE(AnonMemory(bundle_of({{1, 0x1000, 0x1000}}, 0)).modules().empty());
  EXPECT_TRUE(AnonMemory(bundle_of({{1, 0x1000, 0}})).modules().empty());
}

}  // namespace
}  // namespace ptkit::code::symbol
