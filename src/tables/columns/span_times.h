// Times and offsets of rows in bulk, from the runs of their spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/rows/bulk.h"
#include "tables/columns/batch.h"
#include "time/track.h"

namespace ptkit::tables::columns {

// The columns that depend on a span; null if not selected.
struct SpanCells {
  std::uint64_t* tsc = nullptr;
  std::uint32_t* tsc_error = nullptr;
  std::uint8_t* tsc_source = nullptr;
  std::uint8_t* flags = nullptr;  // filled in already, except for TIME_KNOWN
  std::uint64_t* offset = nullptr;

  [[nodiscard]] bool any_time() const noexcept {
    return tsc != nullptr || tsc_error != nullptr || tsc_source != nullptr || flags != nullptr;
  }
};

[[nodiscard]] constexpr time::TimeQuery query_of(const flow::StreamSpan& span) noexcept {
  return {span.since, span.offset | (span.before_first_bit ? time::TimeQuery::kBeforeFirstBit : 0)};
}

// The columns of branches, blocks or instructions; none for other tables. Valid until the batch grows.
[[nodiscard]] SpanCells span_cells(Batch& batch) noexcept;

// Cells may be overwritten up to this many rows after the last run.
inline constexpr std::size_t kSpanSlack = 16;
static_assert(kSpanSlack <= flow::BulkRoom::kSlack);

// Keeps the rows of a known time in [begin, end).
struct TimeFilter {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<RowRange> kept;  // ascending, with rows between two ranges

  // Rows after those that are kept already.
  void keep(std::size_t first, std::size_t last) {
    if (!kept.empty() && kept.back().end == first) {
      kept.back().end = last;
    } else {
      kept.push_back({first, last});
    }
  }
};

// Fills the rows from `first_row` to the end of the last run, with the results of track->at() for each run
// and the same restrictions on the order. Null track: no time is known. `filter` may be null.
void fill_spans(std::span<const flow::SpanRun> runs, std::size_t first_row, time::TimeTrack* track,
                const SpanCells& cells, TimeFilter* filter = nullptr);

}  // namespace ptkit::tables::columns
