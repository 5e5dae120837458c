// Estimates of time: linear interpolation within the interval of a row, by the instructions retired between
// the packets that carry time. docs/time.md, "How the estimate is made".
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "flow/rows/rows.h"
#include "tables/columns/batch.h"
#include "time/track.h"

namespace ptkit::tables::columns {

// The table's cells of estimates; null if not selected, or if the table has none.
[[nodiscard]] std::uint64_t* estimate_cells(Batch& batch) noexcept;
[[nodiscard]] bool wants_estimate(TableId table, ColumnMask mask) noexcept;

// Piecewise linear function from retired instructions to time. Both never decrease from knot to knot. A knot
// is known some packets later, when control flow is.
class TimeKnots {
 public:
  struct Knot {
    double retired = 0;
    double ticks = 0;  // since origin()
  };

  explicit TimeKnots(std::unique_ptr<time::TimeTrack> track) : track_(std::move(track)) {}

  // Rows at `span` happen after `retired` instructions. Neither goes back.
  void pass(flow::StreamSpan span, std::uint64_t retired);
  // Packets were disabled, and untraced time passed.
  void pause(std::uint64_t retired) { pauses_.push_back(static_cast<double>(retired)); }
  // TSC of the first knot.
  [[nodiscard]] std::uint64_t origin() const noexcept { return origin_; }
  // The known knots, oldest first. The user drops knots that are not needed any more.
  [[nodiscard]] std::deque<Knot>& knots() noexcept { return knots_; }

 private:
  // The last row that is certainly before a point.
  struct Upper {
    time::TimePoint point;
    double retired = 0;
    bool exact = false;  // the row has the time of the point
  };
  // Where the program crossed the time of a point. It may have stopped before or after it.
  struct Crossing {
    std::uint64_t number = 0;
    Knot at;
    bool stood_before = false;
    bool stood_after = false;
  };

  void close_stretch();
  void cross(const time::TimePoints& next, double first);
  [[nodiscard]] Knot knot_at(double retired, const time::TimePoint& point);
  void add(const Crossing& crossing);
  [[nodiscard]] bool add_by_cycles(const Crossing& next);
  void add_straight(const Crossing& next);
  void add_by_rate(double rate, double left);
  void add(double retired, double ticks);

  std::unique_ptr<time::TimeTrack> track_;
  flow::StreamSpan span_{UINT64_MAX, UINT64_MAX};
  time::TimePoints stretch_;  // points around the last rows
  double retired_ = 0;        // retired instructions at the last row
  std::deque<Upper> uppers_;  // by point: points after which no row is known yet
  bool any_ = false;
  std::uint64_t origin_ = 0;    // valid if `any_`
  Crossing last_;               // valid if `any_`
  std::vector<double> pauses_;  // since last_
  // Ticks and instructions of running code. Older samples weigh less.
  double ran_ticks_ = 0;
  double ran_instructions_ = 0;
  std::deque<Knot> knots_;
};

// The estimates of the last rows of a table, which are filled in as soon as they are known.
class TimeEstimates {
 public:
  // Starts a stream, which later rows belong to. `track` is used for this alone; null: no time is known.
  void begin_stream(std::unique_ptr<time::TimeTrack> track);
  void pass(flow::StreamSpan span, std::uint64_t retired) {
    if (knots_) knots_->pass(span, retired);
  }
  void pause(std::uint64_t retired) {
    if (knots_) knots_->pause(retired);
  }
  // Adds the next row of the table, its interval, and the instructions that were retired before it.
  void add_row(std::uint64_t retired, const time::TimeRange& range) { rows_.push_back({retired, range}); }
  // Fills in the known estimates. Their column is not uniform: see Batch::set_varying().
  void fill(Batch& batch);
  // Ends the stream: no more rows follow.
  void end_stream(Batch& batch);
  [[nodiscard]] std::size_t open_rows() const noexcept { return rows_.size(); }

 private:
  struct Row {
    std::uint64_t retired = 0;
    time::TimeRange range;
  };
  [[nodiscard]] bool advance(std::uint64_t retired) noexcept;
  [[nodiscard]] std::uint64_t estimate(const Row& row) noexcept;
  [[nodiscard]] double ticks_at(double retired) const noexcept;

  std::unique_ptr<TimeKnots> knots_;  // null: no time is known
  bool any_knot_ = false;
  TimeKnots::Knot from_;  // the last knot at or before the oldest row
  std::deque<Row> rows_;
  std::uint64_t newest_ = 0;
};

}  // namespace ptkit::tables::columns
