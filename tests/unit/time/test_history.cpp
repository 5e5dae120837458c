// Limits in whole ticks: eight at once equal one by one, also without upper limits.
#include <gtest/gtest.h>

#include <cmath>

#include "time/history.h"

namespace ptkit::time::test {
namespace {

Frame frame_of(const std::vector<double>& lows, const std::vector<double>& highs) {
  Frame frame;
  frame.opened = true;
  frame.tsc_mtc_points.emplace_back();
  frame.cycles.reserve(lows.size());
  frame.cycles.size = lows.size();
  frame.cycles.prepare();
  for (std::size_t i = 0; i < lows.size(); ++i) {
    frame.cycles.extent[i] = {100 + 10 * i, 101 + 10 * i};
    frame.cycles.low[i] = lows[i];
    frame.cycles.high[i] = highs[i];
    frame.cycles.rank[i] = i % 2 == 0 ? Rank::CYC : Rank::MTC;
    frame.cycles.flags[i] = i % 3 == 0 ? std::uint8_t{Cycles::BEFORE_TNT} : std::uint8_t{0};
  }
  return frame;
}

void expect_rounded(const std::vector<double>& lows, const std::vector<double>& highs, std::uint64_t origin) {
  History history;
  history.append(frame_of(lows, highs), origin, false);
  ASSERT_EQ(history.size(), lows.size());
  for (std::size_t i = 0; i < lows.size(); ++i) {
    EXPECT_EQ(history.low(i), add_floor(origin, lows[i])) << lows[i];
    EXPECT_EQ(history.high(i), add_ceil(origin, highs[i])) << highs[i];
    EXPECT_EQ(history.extent(i).last, 101 + 10 * i);
    EXPECT_EQ(history.info(i).rank, i % 2 == 0 ? Rank::CYC : Rank::MTC);
    EXPECT_EQ((history.info(i).flags & History::BEFORE_TNT) != 0, i % 3 == 0);
  }
}

TEST(History, RoundsDownAndUp) {
  EXPECT_EQ(add_floor(1000, 2.75), 1002U);
  EXPECT_EQ(add_ceil(1000, 2.25), 1003U);
  EXPECT_EQ(add_ceil(1000, 2), 1002U);
  EXPECT_EQ(add_floor(1000, -0.5), 1000U);
  EXPECT_EQ(add_ceil(1000, -3), 1000U);
  EXPECT_EQ(add_ceil(1000, kNoLimit), kUnknown);
  EXPECT_EQ(add_ceil(kUnknown - 1, 5), kUnknown);
}

// Only damaged streams have such spans.
TEST(History, ClampsTimesBeyond64Bits) {
  for (const double ticks : {1e19, 2e19, 3.66873e+24, kNoLimit}) {
    EXPECT_EQ(add_floor(1000, ticks), kLastTime) << ticks;
    EXPECT_EQ(add_ceil(1000, ticks), kUnknown) << ticks;
  }
  EXPECT_EQ(add_floor(1000, 8e18), 8'000'000'000'000'001'000U);
  EXPECT_EQ(add_floor(kUnknown - 10, 9), kLastTime);
  EXPECT_EQ(add_floor(kUnknown - 10, 100), kLastTime);
}

TEST(History, BulkEqualsOneByOne) {
  std::vector<double> lows;
  std::vector<double> highs;
  for (int i = 0; i < 43; ++i) {
    lows.push_back(i % 2 == 0 ? i * 0.37 - 1 : std::ldexp(1.0 + i / 64.0, i));
    highs.push_back(std::ldexp(1.0 + i / 64.0, i));
    expect_rounded(lows, highs, 1'000'000'007);
    expect_rounded(lows, highs, kUnknown - 1000);
  }
}

TEST(History, BulkWithoutUpperLimits) {
  for (std::size_t at = 0; at < 19; ++at) {
    std::vector<double> lows(19, 1.5);
    std::vector<double> highs(19, 7.25);
    highs[at] = at % 2 == 0 ? kNoLimit : 8e18;
    expect_rounded(lows, highs, 12'345);
  }
}

}  // namespace
}  // namespace ptkit::time::test
