// Estimates of the time of a point, by hand.
#include <gtest/gtest.h>

#include <vector>

#include "time/point_estimate.h"

namespace ptkit::time::test {
namespace {

constexpr double kMtcTicks = 1000;

// Points along a stream.
class Points {
 public:
  Points& mtc(std::uint64_t low, std::uint64_t high) { return add(low, high, {Rank::MTC, 0}); }
  Points& mtc(std::uint64_t time) { return mtc(time, time); }
  Points& tsc(std::uint64_t time) { return add(time, time, {Rank::TSC, 0}); }
  Points& cyc(std::uint64_t low, std::uint64_t high) { return add(low, high, {Rank::CYC, History::CYCLES}); }
  [[nodiscard]] std::uint64_t estimate(std::size_t index, double mtc_ticks = kMtcTicks) const {
    History history;
    for (const History::Point& point : points_) history.begin(point);
    return estimate_time(history, index, mtc_ticks);
  }

 private:
  Points& add(std::uint64_t low, std::uint64_t high, History::Info info) {
    points_.push_back({{points_.size(), points_.size()}, low, high, info});
    return *this;
  }
  std::vector<History::Point> points_;
};

TEST(PointEstimate, IsMiddleOfLimits) {
  const Points points = Points().cyc(100, 121);
  EXPECT_EQ(points.estimate(0), 110U);
  EXPECT_EQ(Points().mtc(100, 200).estimate(0), 150U);
}

TEST(PointEstimate, IsLowerLimitWithoutUpperLimit) {
  EXPECT_EQ(Points().cyc(100, kUnknown).estimate(0), 100U);
  EXPECT_EQ(Points().mtc(100, kUnknown).estimate(0), 100U);
  EXPECT_EQ(Points().mtc(100, 99).estimate(0), 100U);  // limits that contradict each other
}

TEST(PointEstimate, IsExactIfLimitsAreEqual) {
  const Points points = Points().tsc(700).cyc(700, 700).cyc(700, 700).mtc(700);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(points.estimate(i), 700U) << i;
}

// The clock stopped between the two CYC packets, past the MTC.
TEST(PointEstimate, FollowsClockStopOverMtc) {
  const Points points = Points().mtc(0).cyc(10, 610).mtc(1000).cyc(1010, 1610).mtc(2000);
  EXPECT_EQ(points.estimate(1), 10U);
  EXPECT_EQ(points.estimate(3), 1610U);
}

TEST(PointEstimate, PeriodWithoutCyclesIsClockStop) {
  const Points points = Points().mtc(0).cyc(10, 610).mtc(1000).mtc(2000);
  EXPECT_EQ(points.estimate(1), 10U);
  const Points other = Points().mtc(0).mtc(1000).cyc(1010, 1610).mtc(2000);
  EXPECT_EQ(other.estimate(2), 1610U);
}

TEST(PointEstimate, IsMiddleOfEqualClockStops) {
  const Points points =
      Points().mtc(0).cyc(10, 610).mtc(1000).cyc(1010, 1610).mtc(2000).cyc(2010, 2610).mtc(3000);
  EXPECT_EQ(points.estimate(3), 1310U);
}

// A sixteenth of the time between the MTCs around the point: 62.5 ticks.
TEST(PointEstimate, IgnoresShortClockStops) {
  const Points shorter = Points().mtc(0).cyc(10, 610).mtc(1000).cyc(1010, 1072).mtc(2000);
  EXPECT_EQ(shorter.estimate(1), 310U);
  const Points longer = Points().mtc(0).cyc(10, 610).mtc(1000).cyc(1010, 1073).mtc(2000);
  EXPECT_EQ(longer.estimate(1), 10U);
}

TEST(PointEstimate, IsMiddleOfFewTicks) {
  const Points points = Points().mtc(0).cyc(10, 18).mtc(1000).mtc(2000);
  EXPECT_EQ(points.estimate(1), 14U);
  const Points wider = Points().mtc(0).cyc(10, 19).mtc(1000).mtc(2000);
  EXPECT_EQ(wider.estimate(1), 10U);
}

// MTCs are missing up to the TSC: clocks stood.
TEST(PointEstimate, PrecedesClockStopThatTscEnds) {
  const Points points = Points().mtc(0).cyc(10, 5000).tsc(6000);
  EXPECT_EQ(points.estimate(1), 10U);
  EXPECT_EQ(points.estimate(1, 0), 2505U);  // the stream has no MTCs
  EXPECT_EQ(Points().mtc(0).cyc(10, 910).tsc(1000).estimate(1), 460U);
}

TEST(PointEstimate, IsMiddleAtEndsOfStream) {
  const Points points = Points().cyc(10, 610).mtc(1000).mtc(2000).cyc(2010, 2610);
  EXPECT_EQ(points.estimate(0), 310U);
  EXPECT_EQ(points.estimate(3), 2310U);
}

}  // namespace
}  // namespace ptkit::time::test
