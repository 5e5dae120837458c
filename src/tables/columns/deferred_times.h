// Deferred times: a speculative decoder emits rows before their times are known. It records the spans of the
// rows in order, and the times are filled in when the segment's turn comes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "flow/rows/bulk.h"
#include "tables/columns/batch.h"
#include "time/track.h"

namespace ptkit::tables::columns {

class DeferredTimes {
 public:
  // The tables of a sink; errors and gaps may be null.
  struct Tables {
    Batch& main;
    Batch* errors;
    Batch* gaps;
  };

  // Records the span of the next row of `batch`, and of further rows of a table of blocks or branches. The
  // row may not follow. `main` is the sink's main table.
  void add(const Batch& main, const Batch& batch, flow::StreamSpan span);
  // As above, for branches, blocks or instructions in bulk, which start at the end of `main`.
  void add(const Batch& main, std::span<const flow::SpanRun> runs);

  // Queries `track` in the order of the records, and fills in up to `most` times. False: all times are filled
  // in. `room` is false if there was no memory.
  [[nodiscard]] bool fill(time::TimeTrack& track, const Tables& tables, std::size_t most, bool& room);
  [[nodiscard]] std::size_t bytes() const noexcept {
    return runs_.size() * sizeof(flow::SpanRun) + others_.size() * sizeof(Other);
  }

 private:
  // One row of events, errors or gaps, or a query without a row.
  struct Other {
    time::TimeQuery query;
    std::size_t runs_before = 0;
    std::size_t row = 0;
    TableId table = TableId::events;
  };
  void close_run(const Batch& main);
  static void fill_row(const Other& other, Batch& batch, const time::TimeRange& range) noexcept;

  std::vector<flow::SpanRun> runs_;  // for the rows of branches, blocks or instructions
  std::vector<Other> others_;
  bool open_ = false;  // the last run has all rows from `open_row_` on
  std::size_t open_row_ = 0;
  std::size_t next_run_ = 0;  // next run to fill in
  std::size_t next_other_ = 0;
  std::size_t next_row_ = 0;
};

}  // namespace ptkit::tables::columns
