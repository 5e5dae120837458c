// Ranges of addresses.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "code/source/spans.h"

namespace ptkit::code::source {
namespace {

TEST(Spans, FindsDisjointRangesInAnyOrder) {
  Spans spans;
  spans.add(0x200, 0x2ff, 2);
  spans.add(0x100, 0x1ff, 1);
  spans.add(~std::uint64_t{0} - 1, ~std::uint64_t{0}, 3);
  spans.finish();
  EXPECT_EQ(spans.at(0xff), kNone);
  EXPECT_EQ(spans.at(0x100), 1u);
  EXPECT_EQ(spans.at(0x1ff), 1u);
  EXPECT_EQ(spans.at(0x200), 2u);
  EXPECT_EQ(spans.at(0x300), kNone);
  EXPECT_EQ(spans.at(~std::uint64_t{0}), 3u);
}

TEST(Spans, ALaterRangeHidesEarlierOnes) {
  Spans spans;
  spans.add(0x100, 0x1ff, 1);
  spans.add(0x140, 0x15f, 2);
  spans.add(0x150, 0x17f, 3);
  spans.finish();
  EXPECT_EQ(spans.at(0x13f), 1u);
  EXPECT_EQ(spans.at(0x14f), 2u);
  EXPECT_EQ(spans.at(0x150), 3u);
  EXPECT_EQ(spans.at(0x17f), 3u);
  EXPECT_EQ(spans.at(0x180), 1u);
}

TEST(Spans, SaysHowFarARangeOrAGapReaches) {
  Spans spans;
  const auto gap = spans.span_at(5);
  EXPECT_EQ(gap.first, 0u);
  EXPECT_EQ(gap.last, ~std::uint64_t{0});
  spans.add(0x100, 0x1ff, 1);
  spans.add(0x200, 0x2ff, 2);
  spans.add(0x400, 0x4ff, 3);
  spans.finish();
  for (const auto& [first, last, value] :
       std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>>{{0, 0xff, kNone},
                                                                            {0x200, 0x2ff, 2},
                                                                            {0x300, 0x3ff, kNone},
                                                                            {0x400, 0x4ff, 3},
                                                                            {0x500, ~0ULL, kNone}}) {
    for (const std::uint64_t address : {first, last}) {
      const Spans::Span span = spans.span_at(address);
      EXPECT_EQ(span.first, first);
      EXPECT_EQ(span.last, last);
      EXPECT_EQ(span.value, value);
    }
  }
}

}  // namespace
}  // namespace ptkit::code::source
