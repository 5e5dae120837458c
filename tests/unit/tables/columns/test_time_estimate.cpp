// Estimates of time from knots, by hand: streams of TSC packets only, so that every point is exact.
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "tables/columns/time_estimate.h"

namespace ptkit::tables::columns {
namespace {

using flow::StreamSpan;
using time::TimeRange;
using time::TimeTrack;

constexpr std::uint64_t kStart = 1'000'000;  // TSC of the first packet
constexpr std::uint64_t kFirst = 16;         // its offset: after the PSB
constexpr std::uint64_t kTscBytes = 8;
constexpr std::uint64_t kStep = kTscBytes + 1;  // each TSC packet has a TNT packet after it

// A PSB+, and TSC packets at so many ticks after the first one.
class Stream {
 public:
  explicit Stream(std::initializer_list<std::uint64_t> ticks) {
    for (int i = 0; i < 8; ++i) put({0x02, 0x82});
    bool first = true;
    for (const std::uint64_t tick : ticks) {
      put({0x19});
      for (unsigned i = 0; i < 7; ++i)
        bytes_.push_back(static_cast<std::uint8_t>((kStart + tick) >> (8 * i)));
      if (first) put({0x02, 0x23});  // PSBEND
      put({0x06});
      first = false;
    }
    for (int i = 0; i < 32; ++i) put({0});
  }
  [[nodiscard]] std::unique_ptr<TimeTrack> track() const {
    return std::make_unique<TimeTrack>(base::Bytes(bytes_), trace::Clock{}, packet::Errata{});
  }
  // After the TSC packet `number` and not after the next one.
  [[nodiscard]] static StreamSpan after(std::uint64_t number) {
    const std::uint64_t psbend = number == 0 ? 0 : 2;
    const std::uint64_t at = kFirst + psbend + number * kStep;
    return {at, at + (number == 0 ? 2 : 0) + kTscBytes};
  }

 private:
  void put(std::initializer_list<std::uint8_t> more) { bytes_.insert(bytes_.end(), more); }
  std::vector<std::uint8_t> bytes_;
};

using Points = std::vector<std::pair<double, double>>;

Points points_of(TimeKnots& knots) {
  Points out;
  for (const TimeKnots::Knot& knot : knots.knots()) out.emplace_back(knot.retired, knot.ticks);
  return out;
}

TEST(TimeKnots, CrossesAPointBetweenTheRowsAroundIt) {
  const Stream stream({0, 1000, 2000});
  TimeKnots knots(stream.track());
  EXPECT_TRUE(knots.knots().empty());
  knots.pass(Stream::after(0), 10);
  EXPECT_EQ(knots.origin(), kStart);
  knots.pass(Stream::after(0), 20);
  EXPECT_EQ(points_of(knots), Points({{10, 0}}));
  knots.pass(Stream::after(1), 30);
  EXPECT_EQ(points_of(knots), Points({{10, 0}, {25, 1000}}));
}

TEST(TimeKnots, HasTwoKnotsWithoutRetiredInstructions) {
  const Stream stream({0, 1000, 2000, 3000});
  TimeKnots knots(stream.track());
  knots.pass(Stream::after(0), 10);
  knots.pass(Stream::after(1), 10);
  knots.pass(Stream::after(2), 10);
  EXPECT_EQ(points_of(knots), Points({{10, 0}, {10, 1000}, {10, 2000}}));
}

TEST(TimeKnots, TakesPointsOfEqualTimes) {
  const Stream stream({0, 1000, 1000, 2000});
  TimeKnots knots(stream.track());
  knots.pass(Stream::after(0), 0);
  knots.pass(Stream::after(1), 20);
  knots.pass(Stream::after(2), 40);
  EXPECT_EQ(points_of(knots), Points({{0, 0}, {10, 1000}, {30, 1000}}));
}

// Two points at one offset: the program stopped between them, and ran up to the first one.
TEST(TimeKnots, InterpolatesBetweenPassedPoints) {
  const Stream stream({0, 1000, 2000, 9000, 10000});
  TimeKnots knots(stream.track());
  knots.pass(Stream::after(0), 0);
  knots.pass(Stream::after(0), 100);
  knots.pass(Stream::after(1), 100);
  knots.pass(Stream::after(1), 200);
  knots.pass(Stream::after(3), 200);
  EXPECT_EQ(points_of(knots), Points({{0, 0}, {100, 1000}, {200, 2000}, {200, 9000}}));
}

// 100 instructions took 1000 ticks. The next 100 take as many, and the pause has the remaining ticks.
TEST(TimeKnots, PausesForRemainingTime) {
  const Stream stream({0, 1000, 4000});
  TimeKnots knots(stream.track());
  knots.pass(Stream::after(0), 0);
  knots.pass(Stream::after(0), 100);
  knots.pass(Stream::after(1), 100);
  knots.pass(Stream::after(1), 150);
  knots.pause(150);
  knots.pass(Stream::after(1), 199);
  knots.pass(Stream::after(2), 201);
  EXPECT_EQ(points_of(knots), Points({{0, 0}, {100, 1000}, {150, 1500}, {150, 3500}, {200, 4000}}));
}

TEST(TimeKnots, DoesNotPauseWhereInstructionsTookLonger) {
  const Stream stream({0, 1000, 1500});
  TimeKnots knots(stream.track());
  knots.pass(Stream::after(0), 0);
  knots.pass(Stream::after(0), 100);
  knots.pass(Stream::after(1), 100);
  knots.pause(150);
  knots.pass(Stream::after(1), 199);
  knots.pass(Stream::after(2), 201);
  EXPECT_EQ(points_of(knots), Points({{0, 0}, {100, 1000}, {200, 1500}}));
}

TEST(TimeKnots, HasNoInitialRate) {
  const Stream stream({0, 1000});
  TimeKnots knots(stream.track());
  knots.pass(Stream::after(0), 0);
  knots.pause(50);
  knots.pass(Stream::after(0), 99);
  knots.pass(Stream::after(1), 101);
  EXPECT_EQ(points_of(knots), Points({{0, 0}, {100, 1000}}));
}

constexpr ColumnMask bit(Column column) { return ColumnMask{1} << index_of(column); }

// Rows of the branches table.
class Rows {
 public:
  explicit Rows(std::size_t most) : batch_(TableId::branches, bit(Column::branches_tsc_estimate)) {
    EXPECT_TRUE(batch_.reserve(most) && batch_.set_varying(kAllColumns));
  }
  void add(TimeEstimates& estimates, std::uint64_t retired, const TimeRange& range) {
    batch_.add_rows(1);
    estimates.add_row(retired, range);
    estimates.fill(batch_);
  }
  void end(TimeEstimates& estimates) { estimates.end_stream(batch_); }
  // The first `count`.
  [[nodiscard]] std::vector<std::uint64_t> cells(std::size_t count) {
    const std::uint64_t* const first = estimate_cells(batch_);
    return {first, first + count};
  }

 private:
  Batch batch_;
};

TimeRange range(std::uint64_t low, std::uint64_t high) {
  return {kStart + low, static_cast<std::uint32_t>(high - low), time::TimeSource::TSC, true};
}

std::vector<std::uint64_t> times(std::initializer_list<std::uint64_t> ticks) {
  std::vector<std::uint64_t> out;
  for (const std::uint64_t tick : ticks) out.push_back(kStart + tick);
  return out;
}

TEST(TimeEstimates, InterpolatesByInstructions) {
  const Stream stream({0, 1000, 2000});
  Rows rows(8);
  TimeEstimates estimates;
  estimates.begin_stream(stream.track());
  estimates.pass(Stream::after(0), 0);
  rows.add(estimates, 0, range(0, 1000));  // the first row: at the first knot
  EXPECT_EQ(estimates.open_rows(), 0U);
  rows.add(estimates, 25, range(0, 1000));
  rows.add(estimates, 100, range(0, 1000));
  EXPECT_EQ(estimates.open_rows(), 2U);  // until the next knot is known
  estimates.pass(Stream::after(0), 100);
  estimates.pass(Stream::after(1), 100);
  rows.add(estimates, 150, range(1000, 2000));
  EXPECT_EQ(estimates.open_rows(), 1U);
  EXPECT_EQ(rows.cells(3), times({0, 250, 1000}));
  // The last row has no knot after it: the last one's time.
  rows.end(estimates);
  EXPECT_EQ(estimates.open_rows(), 0U);
  EXPECT_EQ(rows.cells(4), times({0, 250, 1000, 1000}));
}

TEST(TimeEstimates, StaysInsideInterval) {
  const Stream stream({0, 1000});
  Rows rows(4);
  TimeEstimates estimates;
  estimates.begin_stream(stream.track());
  estimates.pass(Stream::after(0), 0);
  estimates.pass(Stream::after(0), 100);
  estimates.pass(Stream::after(1), 100);
  rows.add(estimates, 10, range(200, 400));  // 100 ticks by instructions
  rows.add(estimates, 30, range(200, 400));  // 300
  rows.add(estimates, 50, range(200, 400));  // 500
  rows.end(estimates);
  EXPECT_EQ(rows.cells(3), times({200, 300, 400}));
}

TEST(TimeEstimates, NeverGoesBack) {
  const Stream stream({0, 1000});
  Rows rows(2);
  TimeEstimates estimates;
  estimates.begin_stream(stream.track());
  estimates.pass(Stream::after(0), 0);
  estimates.pass(Stream::after(0), 100);
  estimates.pass(Stream::after(1), 100);
  rows.add(estimates, 10, range(300, 900));
  rows.add(estimates, 20, range(0, 900));  // 200 ticks by instructions
  rows.end(estimates);
  EXPECT_EQ(rows.cells(2), times({300, 300}));
}

// At once: rows of unknown time wait for no knot.
TEST(TimeEstimates, IsZeroForUnknownTime) {
  const Stream stream({0, 1000});
  Rows rows(1);
  TimeEstimates estimates;
  estimates.begin_stream(stream.track());
  rows.add(estimates, 5, TimeRange{});
  EXPECT_EQ(estimates.open_rows(), 0U);
  EXPECT_EQ(rows.cells(1), std::vector<std::uint64_t>{0});
}

TEST(TimeEstimates, IsTheLowerLimitWithoutATrack) {
  Rows rows(1);
  TimeEstimates estimates;
  estimates.begin_stream(nullptr);
  estimates.pass(Stream::after(0), 0);
  estimates.pause(0);
  rows.add(estimates, 5, range(300, 900));
  EXPECT_EQ(estimates.open_rows(), 0U);
  EXPECT_EQ(rows.cells(1), times({300}));
}

TEST(TimeEstimates, ExistForTimedTablesOnly) {
  for (const TableId table : {TableId::branches, TableId::blocks, TableId::instructions, TableId::events})
    EXPECT_TRUE(wants_estimate(table, ~ColumnMask{0})) << static_cast<int>(table);
  for (const TableId table : {TableId::errors, TableId::gaps, TableId::edges}) {
    EXPECT_FALSE(wants_estimate(table, ~ColumnMask{0})) << static_cast<int>(table);
    Batch batch(table, ~ColumnMask{0});
    ASSERT_TRUE(batch.set_varying(kAllColumns));
    EXPECT_EQ(estimate_cells(batch), nullptr) << static_cast<int>(table);
  }
  EXPECT_FALSE(wants_estimate(TableId::branches, bit(Column::branches_tsc)));
}

}  // namespace
}  // namespace ptkit::tables::columns
