#include "tables/columns/deferred_times.h"

#include <algorithm>

#include "tables/columns/span_times.h"

namespace ptkit::tables::columns {
namespace {

bool has_runs(TableId table) noexcept {
  return table == TableId::branches || table == TableId::blocks || table == TableId::instructions;
}

template <Column FLAGS, Column TSC, Column ERROR, Column SOURCE>
void put(Batch& batch, std::size_t row, const time::TimeRange& range, unsigned known) noexcept {
  batch.put<TSC>(row, range.tsc);
  batch.put<ERROR>(row, range.error);
  batch.put<SOURCE>(row, static_cast<std::uint8_t>(range.source));
  auto* flags = batch.cells<FLAGS>();
  if (flags != nullptr && range.known) flags[row] = static_cast<Cell<FLAGS>>(flags[row] | known);
}

}  // namespace

// A run without rows still needs its query.
void DeferredTimes::close_run(const Batch& main) {
  if (!open_) return;
  open_ = false;
  flow::SpanRun& run = runs_.back();
  run.row_end = main.rows();
  if (run.row_end != open_row_) return;
  const Other other{{run.since, run.offset}, runs_.size() - 1, SIZE_MAX, main.table()};
  runs_.pop_back();
  others_.push_back(other);
}

void DeferredTimes::add(const Batch& main, const Batch& batch, flow::StreamSpan span) {
  if (!has_runs(batch.table())) {
    close_run(main);
    others_.push_back({query_of(span), runs_.size(), batch.rows(), batch.table()});
    return;
  }
  const time::TimeQuery query = query_of(span);
  if (open_ && runs_.back().since == query.since && runs_.back().offset == query.offset) return;
  close_run(main);
  runs_.push_back({query.since, query.offset, 0});
  open_row_ = batch.rows();
  open_ = true;
}

void DeferredTimes::add(const Batch& main, std::span<const flow::SpanRun> runs) {
  close_run(main);
  std::uint64_t row = main.rows();
  for (const flow::SpanRun& run : runs) {
    if (run.row_end == row) continue;
    runs_.push_back(run);
    row = run.row_end;
  }
}

bool DeferredTimes::fill(time::TimeTrack& track, const Tables& tables, std::size_t most, bool& room) {
  close_run(tables.main);
  room = tables.main.reserve(kSpanSlack);
  if (!room) return false;
  SpanCells cells = span_cells(tables.main);
  cells.offset = nullptr;  // filled in already
  while (most != 0) {
    const std::size_t until = next_other_ < others_.size() ? others_[next_other_].runs_before : runs_.size();
    if (next_run_ < until) {
      const std::size_t count = std::min(most, until - next_run_);
      fill_spans(std::span(runs_).subspan(next_run_, count), next_row_, &track, cells);
      next_run_ += count;
      next_row_ = static_cast<std::size_t>(runs_[next_run_ - 1].row_end);
      most -= count;
    } else if (next_other_ < others_.size()) {
      const Other& other = others_[next_other_++];
      const time::TimeRange range = track.at(other.query);
      --most;
      for (Batch* batch : {&tables.main, tables.errors, tables.gaps}) {
        if (batch != nullptr && batch->table() == other.table && other.row < batch->rows())
          fill_row(other, *batch, range);
      }
    } else {
      return false;
    }
  }
  return true;
}

void DeferredTimes::fill_row(const Other& other, Batch& batch, const time::TimeRange& range) noexcept {
  using enum Column;
  switch (other.table) {
    case TableId::events:
      return put<events_flags, events_tsc, events_tsc_error, events_tsc_source>(batch, other.row, range,
                                                                                flow::EV_TIME_KNOWN);
    case TableId::errors:
      return put<errors_flags, errors_tsc, errors_tsc_error, errors_tsc_source>(batch, other.row, range,
                                                                                ERROR_TIME_KNOWN);
    case TableId::gaps:
      return put<gaps_flags, gaps_tsc, gaps_tsc_error, gaps_tsc_source>(batch, other.row, range,
                                                                        flow::TIME_KNOWN);
    default:
      return;
  }
}

}  // namespace ptkit::tables::columns
