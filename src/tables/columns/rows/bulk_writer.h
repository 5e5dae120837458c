// Rows in bulk: the fast path writes cells into a sink's main table, then offsets and times are filled in.
#pragma once

#include <vector>

#include "flow/rows/bulk.h"
#include "tables/columns/rows/edge_phases.h"
#include "tables/columns/rows/row_counts.h"
#include "tables/columns/rows/row_filter.h"
#include "tables/columns/rows/row_tables.h"
#include "tables/columns/rows/row_times.h"
#include "tables/columns/span_times.h"

namespace ptkit::tables::columns {

class BulkWriter final : public flow::BulkSink {
 public:
  // The parts of one sink. They must outlive this object.
  struct Sink {
    const Request& request;
    const RowFilter& filter;
    RowTables& tables;
    RowTimes& times;
    EdgePhases& edges;
    RowCounts& counts;
    Slice& slice;
  };

  explicit BulkWriter(const Sink& sink) noexcept : sink_(sink) {}

  // Whether the table has rows in bulk: none of its rows has to be checked alone.
  [[nodiscard]] bool any() const noexcept;
  // Whether rows have phases of time, or are selected by time, and else by nothing that rows in bulk do not
  // have.
  [[nodiscard]] bool takes_phases() const noexcept;
  // See RowSink::begin_phase().
  void begin_phase(Phase phase, std::uint64_t until) noexcept {
    phase_ = phase;
    phase_until_ = until;
  }

  [[nodiscard]] bool open(flow::BulkRoom& room) override;
  void close(const flow::BulkRoom& room) override;
  void add_edges(std::span<const flow::EdgeCount> edges, std::uint32_t space, std::uint32_t phase) override;

 private:
  [[nodiscard]] bool selects_none_at(std::uint64_t position) const noexcept;
  [[nodiscard]] bool open_edges(flow::BulkRoom& room) const noexcept;
  [[nodiscard]] bool ends_before_limit(flow::BulkRoom& room) const noexcept;
  void open_events(flow::BulkRoom& room);
  [[nodiscard]] bool has_ips() const noexcept;
  void keep_selected_ips(flow::BulkRoom& room);
  template <typename Selects>
  void keep_rows(flow::BulkRoom& room, const Selects& selects);
  void close_events(const flow::BulkRoom& room);
  void add_timed_events(std::span<const flow::BulkEvent> events);

  Sink sink_;
  Phase phase_;
  std::uint64_t phase_until_ = 0;
  std::vector<flow::SpanRun> spans_;  // of the rows of a pass
  std::vector<flow::BulkEvent> events_;
  TimeFilter filter_;  // of the rows of a pass
  std::vector<RowRange> kept_;
};

}  // namespace ptkit::tables::columns
