// The times of a sink's rows, one by one: from a track, or deferred to the sink that takes the rows over.
#pragma once

#include "flow/rows/rows.h"
#include "tables/columns/deferred_times.h"
#include "tables/columns/rows/row_tables.h"
#include "tables/columns/span_times.h"
#include "time/track.h"

namespace ptkit::tables::columns {

class RowTimes {
 public:
  // `track` is null if times are not selected. It is used for the following rows.
  void follow(time::TimeTrack* track) noexcept {
    track_ = track;
    first_bits_ = track != nullptr && track->cyc_times_first_bits();
    forget_span();
    last_range_ = {};
  }
  // Records the spans of rows, for fill() of `before`.
  void defer(const RowTimes& before) noexcept {
    deferring_ = true;
    first_bits_ = before.first_bits_;
  }

  // Time of the next row of `batch`. `main` is the sink's main table.
  [[nodiscard]] time::TimeRange at(flow::StreamSpan span, const Batch& main, const Batch& batch) {
    if (deferring_) deferred_.add(main, batch, span);
    if (track_ == nullptr) return {};
    if (span != last_span_) {
      last_range_ = track_->at(query_of(span));
      last_span_ = span;
    }
    return last_range_;
  }

  // Fills in up to `most` deferred times of `next`. False: all times are filled in. `room` is false if there
  // was no memory.
  [[nodiscard]] bool fill(RowTimes& next, RowTables& tables, std::size_t most, bool& room) {
    if (track_ == nullptr || !next.deferring_) return false;
    forget_span();
    return next.deferred_.fill(*track_, {tables.table(), tables.errors().table(), tables.gaps().table()},
                               most, room);
  }

  [[nodiscard]] time::TimeTrack* track() const noexcept { return track_; }
  [[nodiscard]] bool deferring() const noexcept { return deferring_; }
  [[nodiscard]] DeferredTimes& deferred() noexcept { return deferred_; }
  // Rows have times, now or later.
  [[nodiscard]] bool any() const noexcept { return track_ != nullptr || deferring_; }
  [[nodiscard]] bool first_bits() const noexcept { return first_bits_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return deferred_.bytes(); }

 private:
  void forget_span() noexcept { last_span_ = {UINT64_MAX, UINT64_MAX}; }

  time::TimeTrack* track_ = nullptr;
  DeferredTimes deferred_;
  bool deferring_ = false;
  bool first_bits_ = false;  // see time::TimeTrack::cyc_times_first_bits()
  flow::StreamSpan last_span_{UINT64_MAX, UINT64_MAX};
  time::TimeRange last_range_;
};

// Whether each row of the table has a time, estimates of it not counted. Otherwise rows do not query it,
// because rows in bulk do not, either.
[[nodiscard]] bool rows_have_time(const Batch& batch) noexcept;

}  // namespace ptkit::tables::columns
