// The address filter of perf.data: its text, and the addresses that it means.
#include <gtest/gtest.h>

#include <tuple>

#include "formats/perf_data/filter.h"
#include "unit/support/warned.h"

namespace ptkit::formats::perf {
namespace {

using trace::RangeKind;
using Range = std::tuple<RangeKind, std::uint64_t, std::uint64_t>;
constexpr auto kFilter = RangeKind::FILTER;
constexpr auto kStop = RangeKind::TRACE_STOP;

std::string text_of(const ParsedFilter& parsed) {
  std::string text;
  for (const FilterClause& one : parsed.clauses) {
    text += std::to_string(static_cast<int>(one.kind)) + " " + std::to_string(one.address) + "/" +
            std::to_string(one.size) + "@" + one.file + ";";
  }
  return text + (parsed.problem.empty() ? "" : " left: " + parsed.left);
}

TEST(PerfFilter, ReadsClauses) {
  // As perf writes them.
  EXPECT_EQ(text_of(parse_filter("filter 0x1006/0xc@/opt/app/p")), "1 4102/12@/opt/app/p;");
  EXPECT_EQ(text_of(parse_filter("filter 0x10/0x20@/a,stop 0x30/0x4@/b,filter 0xffffffff81000000/0x10")),
            "1 16/32@/a;2 48/4@/b;1 18446744071578845184/16@;");
  // As people do.
  EXPECT_EQ(text_of(parse_filter("filter 0x1006/0xc @ /opt/app/p")), "1 4102/12@/opt/app/p;");
  EXPECT_EQ(text_of(parse_filter(" filter 16 / 32 @/a\ttracestop 010/8 @ /b\n, start 5@/c ")),
            "1 16/32@/a;2 8/8@/b;0 5/0@/c;");
  EXPECT_EQ(text_of(parse_filter("filter 0x10@/a stop 0X20")), "1 16/0@/a;2 32/0@;");
  EXPECT_EQ(text_of(parse_filter("")), "");
  EXPECT_EQ(text_of(parse_filter(" , ")), "");
}

TEST(PerfFilter, NamesWhatCannotBeRead) {
  for (const char* const text :
       {"trace 0x10/2@/a", "filter", "filter main@/a", "filter 0x10/ @/a", "filter 0x10/0x5 @",
        "filter 0x10;/a", "filter 0x1g/2", "filter 0x11111111111111111/2", "filter * @/a"}) {
    const ParsedFilter parsed = parse_filter("stop 1/2@/b," + std::string(text));
    EXPECT_EQ(parsed.left, text);
    EXPECT_FALSE(parsed.problem.empty()) << text;
    EXPECT_EQ(parsed.clauses.size(), 1U);
  }
}

TEST(PerfFilter, LimitsClauses) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "filter 1/2@/a,";
  const ParsedFilter parsed = parse_filter(text);
  EXPECT_EQ(parsed.clauses.size(), 64U);
  EXPECT_FALSE(parsed.problem.empty());
}

class Mapped {
 public:
  // Maps [offset, offset + size) of a file.
  Mapped& map(trace::SpaceId space, std::uint64_t address, std::uint64_t size, std::uint64_t offset,
              const std::string& path) {
    trace::CodeRegion region;
    region.space = space;
    region.address = address;
    region.size = size;
    region.file_offset = offset;
    region.file = static_cast<std::int32_t>(bundle.files.size());
    bundle.files.push_back({path, {}, {}, {{"f", offset + 0x10, 0x20}}});
    bundle.code.push_back(region);
    return *this;
  }
  std::vector<Range> ranges(const std::string& filter) {
    bundle.configuration.ranges = {};
    bundle.configuration.space_ranges.clear();
    bundle.warnings.clear();
    apply_filter(filter, bundle);
    std::vector<Range> found;
    for (const trace::AddressRange& one : bundle.configuration.ranges) {
      if (one.kind != RangeKind::OFF) found.emplace_back(one.kind, one.first, one.last);
    }
    return found;
  }
  trace::TraceBundle bundle;
};

TEST(PerfFilter, BecomesAddressesByTheMapping) {
  Mapped one;
  one.map(1, 0x401000, 0x1000, 0x1000, "/opt/app/p");
  EXPECT_EQ(one.ranges("filter 0x1006/0xc @ /opt/app/p"),
            (std::vector<Range>{{kFilter, 0x401006, 0x401011}}));
  EXPECT_EQ(one.ranges("filter 0x1006/0xc@/opt/app/p,stop 0x1020/4@/opt/app/p"),
            (std::vector<Range>{{kFilter, 0x401006, 0x401011}, {kStop, 0x401020, 0x401023}}));
  EXPECT_EQ(one.ranges("tracestop 0x1020@/opt/app/p"), (std::vector<Range>{{kStop, 0x401020, 0x401020}}));
  // What is mapped of it.
  EXPECT_EQ(one.ranges("filter 0/0x9000@/opt/app/p"), (std::vector<Range>{{kFilter, 0x401000, 0x401fff}}));
  EXPECT_EQ(one.ranges("filter 0x1f00/0xffffffffffffffff@/opt/app/p"),
            (std::vector<Range>{{kFilter, 0x401f00, 0x401fff}}));
  EXPECT_TRUE(one.bundle.warnings.empty());
}

TEST(PerfFilter, OfTheKernelHasAddresses) {
  Mapped one;
  one.map(trace::kAnySpace, 0xffffffff81000000, 0x1000, 0x2000, "[kernel]");
  EXPECT_EQ(one.ranges("filter 0xffffffff81000100/0x10"),
            (std::vector<Range>{{kFilter, 0xffffffff81000100, 0xffffffff8100010f}}));
  EXPECT_EQ(one.ranges("filter 0xffffffff81000010"),  // a function
            (std::vector<Range>{{kFilter, 0xffffffff81000010, 0xffffffff8100002f}}));
  EXPECT_EQ(one.ranges("filter 0xfffffffffffffff0/0x100"),
            (std::vector<Range>{{kFilter, 0xfffffffffffffff0, ~std::uint64_t{0}}}));
}

TEST(PerfFilter, WarnsOfPartsThatCannotBeUsed) {
  Mapped one;
  one.map(1, 0x401000, 0x1000, 0x1000, "/opt/app/p");
  for (const char* const text :
       {"filter 0x1006/4@/opt/app/q", "filter 0x5000/4@/opt/app/p", "filter 0x1006@/opt/app/p",
        "start 0x1006/4@/opt/app/p", "filter 5", "word"}) {
    EXPECT_TRUE(one.ranges(text).empty());
    EXPECT_TRUE(warns(one.bundle.warnings, WarningCode::PERF_FILTER_UNUSED, text)) << text;
  }
}

// Code outside of the ranges would be taken as not traced.
TEST(PerfFilter, UsesNoFilterRangeIfOneIsNotKnown) {
  Mapped one;
  one.map(1, 0x401000, 0x1000, 0x1000, "/opt/app/p");
  const std::string known = "filter 0x1006/4@/opt/app/p,stop 0x1020/4@/opt/app/p,";
  const std::vector<Range> stop{{kStop, 0x401020, 0x401023}};
  for (const char* const text :
       {"filter 0x1006/4@/opt/app/q", "filter 0x5000/4@/opt/app/p", "filter 5", "word"}) {
    EXPECT_EQ(one.ranges(known + text), stop) << text;
    ASSERT_EQ(one.bundle.warnings.size(), 1U);
    EXPECT_TRUE(one.bundle.warnings[0].arguments.at(1).ends_with(", so no filter range is used"));
  }
  EXPECT_EQ(one.ranges(known + "stop 0x1006/4@/opt/app/q").size(), 2U);
}

TEST(PerfFilter, TakesTheSizeOfTheMappingWithTheSymbol) {
  Mapped two;
  two.map(trace::kAnySpace, 0xffffffff81000000, 0x1000, 0x2000, "[kernel]");
  two.map(trace::kAnySpace, 0xffffffff81000000, 0x1000, 0x9000, "[other]");
  two.bundle.files.back().symbols.clear();
  EXPECT_EQ(two.ranges("filter 0xffffffff81000010"),
            (std::vector<Range>{{kFilter, 0xffffffff81000010, 0xffffffff8100002f}}));
}

TEST(PerfFilter, JoinsAndLimitsRangesOfASpace) {
  Mapped many;
  for (std::uint64_t i = 0; i < 1000; ++i)
    many.map(1, 0x401000 + i * 0x1000, 0x1000, 0x1000 + i * 0x1000, "/p");
  EXPECT_EQ(many.ranges("filter 0x1000/0x3e8000@/p"), (std::vector<Range>{{kFilter, 0x401000, 0x7e8fff}}));
  for (std::uint64_t i = 0; i < 1000; ++i) many.map(1, 0x10000000 + i * 0x2000, 0x1000, 0x1000, "/q");
  EXPECT_TRUE(many.ranges("filter 0x1000/8@/q").empty());
  EXPECT_TRUE(warns(many.bundle.warnings, WarningCode::PERF_FILTER_UNUSED, "filter 0x1000/8@/q",
                    "its file is mapped at too many addresses"));
}

TEST(PerfFilter, OfSpacesThatAgreeCountsForAll) {
  Mapped two;
  two.map(1, 0x401000, 0x1000, 0x1000, "/opt/app/p").map(2, 0x401000, 0x1000, 0x1000, "/opt/app/p");
  EXPECT_EQ(two.ranges("filter 0x1006/0xc@/opt/app/p"), (std::vector<Range>{{kFilter, 0x401006, 0x401011}}));
}

TEST(PerfFilter, CountsBySpaceWhereAddressesDiffer) {
  Mapped two;
  two.map(1, 0x401000, 0x1000, 0x1000, "/opt/app/p").map(2, 0x501000, 0x1000, 0x1000, "/opt/app/p");
  two.map(3, 0x401000, 0x1000, 0x1000, "/opt/app/q");
  EXPECT_EQ(two.ranges("filter 0x1006/0xc@/opt/app/p,filter 0xffffffff81000000/2"),
            (std::vector<Range>{{kFilter, 0xffffffff81000000, 0xffffffff81000001}}));
  std::vector<std::tuple<trace::SpaceId, std::uint64_t, std::uint64_t>> found;
  for (const trace::SpaceRange& one : two.bundle.configuration.space_ranges)
    found.emplace_back(one.space, one.range.first, one.range.last);
  EXPECT_EQ(found, (decltype(found){{1, 0x401006, 0x401011}, {2, 0x501006, 0x501011}}));
}

// The trace unit has four ranges; a clause becomes several where a file is mapped in parts.
TEST(PerfFilter, MayHaveMoreThanFourRanges) {
  Mapped one;
  one.map(1, 0x401000, 0x1000, 0x1000, "/p");
  std::string filter;
  for (int i = 0; i < 6; ++i) filter += "filter " + std::to_string(0x1000 + 16 * i) + "/4@/p,";
  EXPECT_EQ(one.ranges(filter).size(), 4U);
  ASSERT_EQ(one.bundle.configuration.space_ranges.size(), 2U);
  EXPECT_EQ(one.bundle.configuration.space_ranges[0].space, trace::kAnySpace);
}

}  // namespace
}  // namespace ptkit::formats::perf
