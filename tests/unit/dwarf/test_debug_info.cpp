// Chains of inlined functions, and DWARF that would keep a reader busy for ever.
#include <gtest/gtest.h>

#include "dwarf/debug_info.h"
#include "unit/support/dwarf_maker.h"

namespace ptkit::dwarf {
namespace {

using test::DwarfMaker;

constexpr std::uint64_t kText = DwarfMaker::kText;

std::shared_ptr<DebugInfo> opened(DwarfMaker& maker) {
  return DebugInfo::open(trace::TraceBuffer::from_vector(maker.make()));
}

std::vector<std::string> names_at(const DebugInfo& info, std::uint64_t address) {
  std::vector<std::string> names;
  for (const Frame& frame : info.frames_at(address)) names.emplace_back(frame.function);
  return names;
}

using Names = std::vector<std::string>;

TEST(DebugInfo, FindsInlinedFunctionsInnermostFirst) {
  DwarfMaker maker;
  const std::uint32_t inner = maker.named("inner");
  const std::uint32_t middle = maker.named("middle");
  maker.function("outer", kText, 0x100);
  maker.inlined(middle, kText + 0x10, 0x40, 7);
  maker.block();
  maker.inlined(inner, kText + 0x20, 0x10, 8);
  maker.end();
  maker.end();
  maker.end();
  maker.inlined(inner, kText + 0x60, 0x10, 9);
  maker.end();
  maker.end();
  const auto info = opened(maker);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(names_at(*info, kText), Names({"outer"}));
  EXPECT_EQ(names_at(*info, kText + 0x10), Names({"middle", "outer"}));
  EXPECT_EQ(names_at(*info, kText + 0x20), Names({"inner", "middle", "outer"}));
  EXPECT_EQ(names_at(*info, kText + 0x30), Names({"middle", "outer"}));
  EXPECT_EQ(names_at(*info, kText + 0x60), Names({"inner", "outer"}));
  EXPECT_EQ(names_at(*info, kText + 0x100), Names());
  EXPECT_EQ(names_at(*info, kText - 1), Names());
  EXPECT_FALSE(info->is_cut());
}

TEST(DebugInfo, FindsFunctionsWithinFunctions) {
  DwarfMaker maker;
  maker.function("outer", kText, 0x100);
  maker.block();
  maker.function("nested", kText + 0x200, 0x40);
  maker.end();
  maker.end();
  maker.end();
  const auto info = opened(maker);
  EXPECT_EQ(names_at(*info, kText + 0x210), Names({"nested"}));
  EXPECT_EQ(names_at(*info, kText + 0x10), Names({"outer"}));
}

TEST(DebugInfo, DropsCodeThatTheLinkerDropped) {
  DwarfMaker maker;
  maker.function("kept", kText + 0x10, 0x40);
  maker.end();
  maker.function("dropped", 0, 0x2000);
  maker.end();
  EXPECT_EQ(names_at(*opened(maker), kText + 0x20), Names({"kept"}));
}

TEST(DebugInfo, EndsWhereOriginsReferToEachOther) {
  DwarfMaker maker;
  const auto next = static_cast<std::uint32_t>(maker.info.size() + 5);
  const std::uint32_t first = maker.reference(next);
  EXPECT_EQ(maker.reference(first), next);
  maker.function("outer", kText, 0x100);
  maker.inlined(first, kText, 0x10, 1);
  maker.end();
  maker.end();
  EXPECT_EQ(names_at(*opened(maker), kText), Names({"", "outer"}));
}

TEST(DebugInfo, EndsWhereSiblingsLeadBack) {
  DwarfMaker maker;
  const std::uint32_t outer = maker.function("outer", kText, 0x100);
  maker.block();
  maker.skipped(outer);
  maker.end();
  maker.end();
  maker.end();
  const auto info = opened(maker);
  EXPECT_EQ(names_at(*info, kText), Names({"outer"}));
  EXPECT_EQ(names_at(*info, kText + 0x200), Names());
}

TEST(DebugInfo, EndsInATreeOfAnyDepth) {
  DwarfMaker maker;
  maker.function("outer", kText, 0x100);
  for (int i = 0; i < 300'000; ++i) maker.block();
  EXPECT_EQ(names_at(*opened(maker), kText), Names({"outer"}));
}

TEST(DebugInfo, StopsWhereManyFunctionsShareALongListOfRanges) {
  DwarfMaker maker;
  constexpr int kMany = 2000;
  for (int i = 0; i < kMany; ++i) {
    test::append(maker.ranges, std::uint64_t{0x10});
    test::append(maker.ranges, std::uint64_t{0x20});
    maker.scattered();
  }
  test::append(maker.ranges, std::uint64_t{0});
  test::append(maker.ranges, std::uint64_t{0});
  const auto info = opened(maker);
  EXPECT_EQ(info->frames_at(kText + 0x500).size(), 0u);
  EXPECT_TRUE(info->is_cut());
}

TEST(DebugInfo, EndsWhereverTheFileIsCut) {
  DwarfMaker maker;
  const std::uint32_t inner = maker.named("inner");
  maker.function("outer", kText, 0x100);
  maker.inlined(inner, kText, 0x10, 1);
  maker.end();
  maker.end();
  const test::ByteVector whole = maker.make();
  for (std::size_t size = 0; size < whole.size(); size += 3) {
    const auto info = DebugInfo::open(
        trace::TraceBuffer::from_vector({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}));
    EXPECT_LE(info == nullptr ? 0 : info->frames_at(kText).size(), 2u);
  }
}

TEST(DebugInfo, EndsWhereBytesAreDamaged) {
  DwarfMaker maker;
  const std::uint32_t inner = maker.named("inner");
  maker.function("outer", kText, 0x100);
  maker.inlined(inner, kText, 0x10, 1);
  maker.end();
  maker.end();
  const test::ByteVector whole = maker.make();
  for (std::size_t at = test::ElfMaker<test::Elf64Types>::kContents; at < 0x400; ++at) {
    for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0x80U, 0xffU}) {
      test::ByteVector damaged = whole;
      damaged[at] = static_cast<std::uint8_t>(value);
      const auto info = DebugInfo::open(trace::TraceBuffer::from_vector(std::move(damaged)));
      EXPECT_LE(info == nullptr ? 0 : info->frames_at(kText).size(), 3u);
    }
  }
}

TEST(DebugInfo, IsNullWithoutDwarf) {
  EXPECT_EQ(DebugInfo::open({}), nullptr);
  test::ElfMaker<test::Elf64Types> elf;
  elf.segments = {{PT_LOAD, kText, 0, 0x100, 0x100}};
  EXPECT_EQ(DebugInfo::open(trace::TraceBuffer::from_vector(elf.make())), nullptr);
}

}  // namespace
}  // namespace ptkit::dwarf
