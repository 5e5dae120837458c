// The address ranges of a bundle with several processes.
#include <gtest/gtest.h>

#include <sstream>
#include <utility>

#include "capture/common/recorded_filter.h"
#include "capture/linux/emulator/filter_ranges.h"

namespace ptkit::capture {
namespace {

using Kind = FilterRequest::Kind;
constexpr std::uint64_t kLast = ~std::uint64_t{0};

ProcessRanges process(const ProcessRanges::Set& filters, const ProcessRanges::Set& stops = {}) {
  ProcessRanges out;
  for (const auto& [first, last] : filters) EXPECT_TRUE(out.add(Kind::FILTER, first, last));
  for (const auto& [first, last] : stops) EXPECT_TRUE(out.add(Kind::TRACESTOP, first, last));
  return out;
}

// As text, such as "F1-2 S5-5".
std::string common(bool filters_only, std::initializer_list<ProcessRanges> processes) {
  FilterRanges found(filters_only);
  for (const ProcessRanges& one : processes) found.add(one);
  std::ostringstream out;
  const char* blank = "";
  for (const trace::AddressRange& range : found.common()) {
    out << std::exchange(blank, " ") << (range.kind == trace::RangeKind::FILTER ? 'F' : 'S') << range.first
        << '-' << range.last;
  }
  return out.str();
}

TEST(FilterRanges, MergesAdjacentRanges) {
  EXPECT_EQ(common(true, {process({{10, 19}, {20, 29}, {25, 27}, {31, 40}})}), "F10-29 F31-40");
  EXPECT_EQ(common(true, {process({{1, 2}}, {{3, 4}})}), "F1-2 S3-4");
  EXPECT_EQ(common(true, {process({{5, kLast}, {kLast, kLast}, {0, 1}})}),
            "F0-1 F5-" + std::to_string(kLast));
}

TEST(FilterRanges, EmptyBeyondTheRangesOfATraceUnit) {
  const ProcessRanges::Set four{{10, 11}, {20, 21}, {30, 31}, {40, 41}};
  EXPECT_EQ(common(true, {process(four)}), "F10-11 F20-21 F30-31 F40-41");
  EXPECT_EQ(common(true, {process(four, {{1, 2}})}), "");
}

TEST(FilterRanges, UniteFiltersOfAllProcesses) {
  EXPECT_EQ(common(true, {process({{10, 19}}), process({{30, 39}}), process({{10, 19}})}), "F10-19 F30-39");
  EXPECT_EQ(common(true, {process({}), process({{10, 19}})}), "F10-19");
  EXPECT_EQ(common(true, {process({})}), "");
  EXPECT_EQ(common(true, {}), "");
}

// A decoder would apply the range to all processes, and end a walk where another process continues.
TEST(FilterRanges, EmptyIfTraceStopDiffersBetweenProcesses) {
  EXPECT_EQ(common(false, {process({}, {{5, 6}}), process({}, {{5, 6}})}), "S5-6");
  EXPECT_EQ(common(false, {process({}, {{5, 6}}), process({})}), "");
  EXPECT_EQ(common(false, {process({}), process({}, {{5, 6}})}), "");
  EXPECT_EQ(common(true, {process({{1, 2}}, {{5, 6}}), process({{1, 2}}, {{7, 8}})}), "");
  // What is not traced does not matter.
  EXPECT_EQ(common(true, {process({{1, 2}}, {{5, 6}}), process({}, {{7, 8}}), process({})}), "F1-2 S5-6");
}

TEST(FilterRanges, EmptyIfTraceStopCameLate) {
  ProcessRanges late = process({{1, 2}}, {{5, 6}});
  late.stops_late = true;
  EXPECT_EQ(common(true, {late}), "");
}

TEST(FilterRanges, IgnoreStartAndStopPoints) {
  ProcessRanges one;
  EXPECT_FALSE(one.add(Kind::START, 5, 5));
  EXPECT_FALSE(one.add(Kind::STOP, 6, 6));
  EXPECT_TRUE(one.add(Kind::FILTER, 7, 8));
  EXPECT_FALSE(one.add(Kind::FILTER, 7, 8));
  EXPECT_EQ(common(true, {one}), "F7-8");
}

TEST(SetRanges, WritesAddrCfgFields) {
  trace::Configuration configuration;
  configuration.rtit_ctl = 5;
  set_ranges(std::vector<trace::AddressRange>{{trace::RangeKind::FILTER, 1, 2},
                                              {trace::RangeKind::TRACE_STOP, 3, 4}},
             configuration);
  EXPECT_EQ(configuration.rtit_ctl, 0x21'0000'0005U);
  EXPECT_EQ(configuration.ranges[1].kind, trace::RangeKind::TRACE_STOP);
  EXPECT_EQ(configuration.ranges[1].first, 3U);
  EXPECT_EQ(configuration.ranges[2].kind, trace::RangeKind::OFF);
}

}  // namespace
}  // namespace ptkit::capture
