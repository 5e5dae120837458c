// Times that are not known yet when rows are made: who decodes ahead keeps the places, in order, and the
// times are filled in when their turn comes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "columns/batch.h"
#include "flow/bulk.h"
#include "time/track.h"

namespace ptkit::columns {

class DeferredTimes {
 public:
  // The tables of a sink; errors and gaps may be null.
  struct Tables {
    Batch& main;
    Batch* errors;
    Batch* gaps;
  };

  // The next row of `batch` stands here, if it gets one, and further ones in a table of blocks or branches.
  // `main` is the sink's main table.
  void ask(const Batch& main, const Batch& batch, flow::Place place);
  // The same for rows in bulk, of branches, blocks or instructions; they begin at the end of `main`.
  void ask(const Batch& main, std::span<const flow::PlaceRun> runs);

  // Asks `track`, in the order of the questions, and fills in what it says: so many answers. False: all were
  // given. `room` is false if there was no memory.
  [[nodiscard]] bool answer(time::TimeTrack& track, const Tables& tables, std::size_t most, bool& room);
  [[nodiscard]] std::size_t bytes() const noexcept {
    return runs_.size() * sizeof(flow::PlaceRun) + others_.size() * sizeof(Other);
  }

 private:
  // One row of events, errors or gaps, or none at all.
  struct Other {
    time::Question place;
    std::size_t runs_before = 0;
    std::size_t row = 0;
    TableId table = TableId::events;
  };
  void close_run(const Batch& main);
  static void tell(const Other& other, Batch& batch, const time::TimeRange& range) noexcept;

  std::vector<flow::PlaceRun> runs_;  // of the rows of branches, blocks or instructions
  std::vector<Other> others_;
  bool open_ = false;  // the last run has all rows from `open_row_` on
  std::size_t open_row_ = 0;
  std::size_t next_run_ = 0;  // to be answered
  std::size_t next_other_ = 0;
  std::size_t next_row_ = 0;
};

}  // namespace ptkit::columns
