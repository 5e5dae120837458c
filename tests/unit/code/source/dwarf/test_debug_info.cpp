// Chains of inlined functions, and DWARF that would keep a reader busy for ever.
#include <gtest/gtest.h>

#include <utility>

#include "code/image/elf/debug_sections.h"
#include "code/source/dwarf/debug_info.h"
#include "unit/support/makers/dwarf_maker.h"

namespace ptkit::code::dwarf {
namespace {

using code::source::Frame;
using code::source::InlinedCall;
using code::source::InlinedSpan;
using code::source::kMostLevels;
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

TEST(DebugInfo, KnowsWhereWhichCallsAreInlined) {
  DwarfMaker maker;
  const std::uint32_t inner = maker.named("inner");
  const std::uint32_t middle = maker.named("middle");
  maker.function("outer", kText, 0x100);
  maker.inlined(middle, kText + 0x10, 0x40, 7);
  maker.inlined(inner, kText + 0x20, 0x10, 8);
  maker.end();
  maker.end();
  maker.inlined(inner, kText + 0x60, 0x10, 9);
  maker.end();
  maker.end();
  const auto info = opened(maker);
  const auto spans = [&](std::uint64_t address) {
    const InlinedSpan span = info->inlined_at(kText + address);
    return std::pair(span.first - kText, span.last - kText);
  };
  EXPECT_EQ(info->inlined_at(kText).call, InlinedCall::kNone);
  EXPECT_EQ(spans(0x5), std::pair(0x0UL, 0xfUL));
  EXPECT_EQ(spans(0x15), std::pair(0x10UL, 0x1fUL));
  EXPECT_EQ(spans(0x20), std::pair(0x20UL, 0x2fUL));
  EXPECT_EQ(spans(0x4f), std::pair(0x30UL, 0x4fUL));
  EXPECT_EQ(spans(0x50), std::pair(0x50UL, 0x5fUL));
  EXPECT_EQ(spans(0xff), std::pair(0x70UL, 0xffUL));
  EXPECT_EQ(info->inlined_at(kText + 0x15).call, info->inlined_at(kText + 0x35).call);
  const InlinedCall outer = info->inlined_call(info->inlined_at(kText + 0x15).call);
  const InlinedCall nested = info->inlined_call(info->inlined_at(kText + 0x25).call);
  const InlinedCall other = info->inlined_call(info->inlined_at(kText + 0x65).call);
  EXPECT_EQ(outer.level, 1U);
  EXPECT_EQ(outer.caller, InlinedCall::kNone);
  EXPECT_EQ(nested.level, 2U);
  EXPECT_EQ(nested.caller, info->inlined_at(kText + 0x15).call);
  EXPECT_EQ(other.level, 1U);
  EXPECT_EQ(other.function, nested.function);
  EXPECT_NE(other.function, outer.function);
  EXPECT_NE(info->inlined_at(kText + 0x65).call, info->inlined_at(kText + 0x25).call);
}

TEST(DebugInfo, NumbersOfCallsStayWhenFunctionsWithinFunctionsAreFound) {
  DwarfMaker maker;
  const std::uint32_t inner = maker.named("inner");
  maker.function("outer", kText, 0x100);
  maker.inlined(inner, kText + 0x10, 0x10, 7);
  maker.end();
  maker.function("nested", kText + 0x200, 0x40);
  maker.end();
  maker.end();
  const auto info = opened(maker);
  const std::uint32_t call = info->inlined_at(kText + 0x10).call;
  EXPECT_EQ(info->inlined_at(kText + 0x210).call, InlinedCall::kNone);
  EXPECT_EQ(info->inlined_at(kText + 0x10).call, call);
  EXPECT_EQ(info->inlined_call(call).level, 1U);
}

TEST(DebugInfo, CallsThatAreTooDeepCountAsCodeOfTheirCallers) {
  DwarfMaker maker;
  const std::uint32_t inner = maker.named("inner");
  maker.function("outer", kText, 0x1000);
  for (std::uint32_t i = 1; i <= kMostLevels + 5; ++i) maker.inlined(inner, kText + i, 0x800, 1);
  for (std::uint32_t i = 0; i <= kMostLevels + 5; ++i) maker.end();
  const auto info = opened(maker);
  EXPECT_EQ(info->inlined_call(info->inlined_at(kText + 7).call).level, 7U);
  EXPECT_FALSE(info->is_cut());
  EXPECT_EQ(info->inlined_call(info->inlined_at(kText + kMostLevels + 4).call).level, kMostLevels);
  EXPECT_TRUE(info->is_cut());
}

TEST(DebugInfo, NeedsNoMoreThanTheSectionsThatAreKept) {
  DwarfMaker maker;
  const std::uint32_t inner = maker.named("inner");
  maker.function("outer", kText, 0x100);
  maker.inlined(inner, kText, 0x10, 1);
  maker.end();
  maker.end();
  EXPECT_EQ(code::image::debug_sections(maker.make()), "");  // no lines
  maker.has_line_section(true);
  const std::string kept = code::image::debug_sections(maker.make());
  const auto info = DebugInfo::open(trace::TraceBuffer::from_vector({kept.begin(), kept.end()}));
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(names_at(*info, kText), Names({"inner", "outer"}));
  EXPECT_EQ(names_at(*info, kText + 0x10), Names({"outer"}));
  EXPECT_EQ(code::image::debug_sections(base::Bytes(maker.make()).first(100)), "");
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

TEST(DebugInfo, DoesNotReadUnitsWithEndlessAbbreviations) {
  DwarfMaker maker;
  maker.function("outer", kText, 0x100);
  maker.end();
  maker.unused_abbreviation(1'000'000);
  const auto info = opened(maker);
  EXPECT_EQ(names_at(*info, kText), Names());
  EXPECT_TRUE(info->is_cut());
}

// libdw would keep 20 GB of abbreviations in memory.
TEST(DebugInfo, DoesNotReadManyUnitsThatShareManyAbbreviations) {
  DwarfMaker maker;
  maker.function("outer", kText, 0x100);
  maker.end();
  for (int i = 0; i < 10'000; ++i) maker.unused_abbreviation(0);
  EXPECT_EQ(names_at(*opened(maker), kText), Names({"outer"}));
  maker.empty_units(30'000);
  const auto info = opened(maker);
  EXPECT_EQ(names_at(*info, kText), Names());
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
}  // namespace ptkit::code::dwarf
