// Estimates of time: rows are placed within their intervals by the instructions retired between the packets
// that tell time. docs/time.md, "How the estimate is made".
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "columns/batch.h"
#include "flow/rows.h"
#include "time/track.h"

namespace ptkit::columns {

// The table's cells of estimates; null where they are not asked for, or the table has none.
[[nodiscard]] std::uint64_t* estimate_cells(Batch& batch) noexcept;
[[nodiscard]] bool wants_estimate(TableId table, ColumnMask mask) noexcept;

// Time as a function of the instructions retired in a stream: straight lines from knot to knot, which never
// go back in either. A knot is known once control flow is known some packets further on.
class TimeKnots {
 public:
  struct Knot {
    double retired = 0;
    double ticks = 0;  // since origin()
  };

  explicit TimeKnots(std::unique_ptr<time::TimeTrack> track) : track_(std::move(track)) {}

  // What stands at `place` had happened when so many instructions were retired. Neither goes back.
  void pass(flow::Place place, std::uint64_t retired);
  // Time went by that is not traced: packets were off.
  void pause(std::uint64_t retired) { pauses_.push_back(static_cast<double>(retired)); }
  // TSC of the first knot.
  [[nodiscard]] std::uint64_t origin() const noexcept { return origin_; }
  // The knots found so far, oldest first; the user drops those that are not needed.
  [[nodiscard]] std::deque<Knot>& knots() noexcept { return knots_; }

 private:
  // The last row that certainly came before a point.
  struct Upper {
    time::TimePoint point;
    double retired = 0;
    bool exact = false;  // it came at the point itself
  };
  // Where the time of a point was crossed. Before or behind it the program may have stood still.
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
  flow::Place place_{UINT64_MAX, UINT64_MAX};
  time::TimePoints stretch_;  // of the last rows
  double retired_ = 0;        // when the last of them happened
  std::deque<Upper> uppers_;  // of points whose rows behind them are not known yet, by point
  bool any_ = false;
  std::uint64_t origin_ = 0;    // if `any_`
  Crossing last_;               // if `any_`
  std::vector<double> pauses_;  // since then
  // Ticks and instructions where the program ran, the older ones with less weight.
  double ran_ticks_ = 0;
  double ran_instructions_ = 0;
  std::deque<Knot> knots_;
};

// The estimates of the last rows of a table, which are filled in as soon as they are known.
class TimeEstimates {
 public:
  // Rows are those of another stream from now on. `track` is for this alone; null: no time is known.
  void begin_stream(std::unique_ptr<time::TimeTrack> track);
  void pass(flow::Place place, std::uint64_t retired) {
    if (knots_) knots_->pass(place, retired);
  }
  void pause(std::uint64_t retired) {
    if (knots_) knots_->pause(retired);
  }
  // The next row of the table: it has this interval, and happened when so many instructions were retired.
  void add_row(std::uint64_t retired, const time::TimeRange& range) { rows_.push_back({retired, range}); }
  // Fills in what is known by now.
  void fill(Batch& batch);
  // No more rows of this stream will come.
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

}  // namespace ptkit::columns
