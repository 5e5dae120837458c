#include "tables/columns/rows/bulk_writer.h"

#include <algorithm>

#include "tables/columns/rows/bulk_cells.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 16U;
constexpr std::size_t kMostEvents = std::size_t{1} << 12U;
constexpr std::size_t kMostSpans = std::size_t{1} << 11U;  // between two queries of times
// Bits of the kinds of BulkEvent.
constexpr std::uint64_t kBulkEvents = std::uint64_t{1} << static_cast<unsigned>(flow::EventKind::ENABLED) |
                                      std::uint64_t{1} << static_cast<unsigned>(flow::EventKind::DISABLED);

}  // namespace

bool BulkWriter::any() const noexcept {
  const Request& request = sink_.request;
  // A count does not show the direction of a conditional branch.
  const bool by_direction = request.table == TableId::edges && !request.selection.branches.both_ways();
  // Only rows with marks are numbered.
  const bool numbered = sink_.tables.table().table() == TableId::branches &&
                        sink_.tables.table().wants(Column::branches_number);
  const std::uint64_t events = request.selection.event_kinds & kBulkEvents;
  const bool by_kind = request.table == TableId::events && events != kBulkEvents;
  const bool by_ip = sink_.filter.by_ip() && !has_ips();
  const bool by_row = numbered != request.marks || by_ip || by_direction || by_kind || request.estimate;
  return !by_row && request.table != TableId::packets;
}

// Whether rows in bulk can be selected by address: they have the columns for it, or are counted first.
bool BulkWriter::has_ips() const noexcept {
  const Batch& batch = sink_.tables.table();
  switch (batch.table()) {
    case TableId::edges:
      return true;
    case TableId::branches:
      return batch.wants(Column::branches_from_ip) && batch.wants(Column::branches_to_ip) &&
             batch.wants(Column::branches_flags);
    case TableId::blocks:
      return batch.wants(Column::blocks_ip) && batch.wants(Column::blocks_size);
    case TableId::instructions:
      return batch.wants(Column::instructions_ip);
    default:
      return false;
  }
}

bool BulkWriter::takes_phases() const noexcept {
  const bool marks_times = sink_.request.marks_limits() && !sink_.request.by_instructions();
  return (sink_.filter.by_time() || marks_times) && any();
}

// Whether the selected times have no rows in bulk from there on.
bool BulkWriter::selects_none_at(std::uint64_t position) const noexcept {
  if (!sink_.filter.by_time()) return false;
  return sink_.times.track() == nullptr || (phase_.is_none() && position < phase_until_);
}

bool BulkWriter::open(flow::BulkRoom& room) {
  Batch& batch = sink_.tables.table();
  const bool edges_by_time = sink_.filter.by_time() && batch.table() == TableId::edges;
  const bool marks_times = sink_.request.marks_limits() && !sink_.request.by_instructions();
  if (sink_.request.marks_limits() && !marks_times && !ends_before_limit(room)) return false;
  if ((edges_by_time || marks_times) && (phase_.rows || room.position >= phase_until_)) return false;
  if (marks_times && sink_.counts.limits < phase_.limits) return false;
  const bool selects_none = !sink_.filter.selects_context() || selects_none_at(room.position);
  room.kind = selects_none ? flow::BulkRows::NONE : bulk_rows_of(batch.table());
  room.space = sink_.filter.space();
  room.first_instruction = sink_.counts.instructions;
  room.row = batch.rows();
  room.limit = SIZE_MAX;
  if (room.kind == flow::BulkRows::EDGES) return open_edges(room);
  if (room.kind == flow::BulkRows::NONE) return true;
  room.limit = room.row + std::min(sink_.slice.room(room.row), kMostAtOnce);
  if (room.kind == flow::BulkRows::EVENTS) {
    open_events(room);
    return true;
  }
  if (!sink_.tables.room_for(batch, room.limit - room.row + flow::BulkRoom::kSlack)) return false;
  set_columns(room, batch);
  room.choice = sink_.filter.branches();
  if (room.number != nullptr) {
    room.first_branch = sink_.counts.branches;
    room.enabled = MARK_ENABLED;
    room.disabled = MARK_DISABLED;
  }
  const SpanCells cells = span_cells(batch);
  const bool needs_times = sink_.times.any() && cells.any_time();
  if (needs_times || cells.offset != nullptr || batch.keeps_runs() || sink_.filter.by_time()) {
    spans_.resize(kMostSpans);
    room.spans = spans_.data();
    room.span_limit = kMostSpans;
    room.first_bits = sink_.times.first_bits();
  }
  return true;
}

// Phases by instructions: a pass ends before it may reach the next limit, and branches around the limit are
// emitted one by one.
bool BulkWriter::open_edges(flow::BulkRoom& room) const noexcept {
  room.phase = static_cast<std::uint32_t>(phase_.number);
  room.count_blocks = sink_.request.counts_blocks;
  if (!sink_.request.by_instructions()) return true;
  const auto& limits = sink_.request.bins;
  const std::uint64_t instructions = sink_.counts.instructions;
  const auto next = std::upper_bound(limits.begin(), limits.end(), instructions);
  // The first branch of a pass may be the instruction before it.
  if (next != limits.begin() && *(next - 1) == instructions && instructions != 0) return false;
  if (next == limits.end()) {
    room.kind = flow::BulkRows::NONE;
    return true;
  }
  if (*next - instructions <= flow::BulkRoom::kSlack) return false;
  room.most_instructions = *next - instructions - flow::BulkRoom::kSlack;
  room.phase = static_cast<std::uint32_t>(next - limits.begin()) - 1;
  return true;
}

// Marks of limits by instructions, in the same way.
bool BulkWriter::ends_before_limit(flow::BulkRoom& room) const noexcept {
  const auto& limits = sink_.request.bins;
  const std::uint64_t instructions = sink_.counts.instructions;
  const auto next = std::lower_bound(limits.begin(), limits.end(), instructions);
  if (next == limits.end()) return true;
  if (*next - instructions <= flow::BulkRoom::kSlack) return false;
  room.most_instructions = *next - instructions - flow::BulkRoom::kSlack;
  return true;
}

void BulkWriter::open_events(flow::BulkRoom& room) {
  events_.resize(kMostEvents);
  room.event = events_.data();
  room.limit = std::min(room.limit, room.row + kMostEvents);
}

// Keeps some rows of a pass, and their spans.
template <typename Selects>
void BulkWriter::keep_rows(flow::BulkRoom& room, const Selects& selects) {
  Batch& batch = sink_.tables.table();
  const std::size_t begin = batch.rows();
  kept_.clear();
  std::size_t rows = begin;
  std::size_t row = begin;
  const auto keep_to = [&](std::size_t end) {
    for (; row < end; ++row) {
      if (!selects(row)) continue;
      if (!kept_.empty() && kept_.back().end == row) {
        ++kept_.back().end;
      } else {
        kept_.push_back({row, row + 1});
      }
      ++rows;
    }
  };
  for (std::size_t i = 0; i < room.span_count; ++i) {
    keep_to(room.spans[i].row_end);
    room.spans[i].row_end = rows;
  }
  keep_to(room.row);
  room.row = batch.move_rows(kept_, room.row);
}

void BulkWriter::keep_selected_ips(flow::BulkRoom& room) {
  const RowFilter& filter = sink_.filter;
  switch (room.kind) {
    case flow::BulkRows::BRANCHES:
      return keep_rows(room, [&](std::size_t row) {
        return ((room.flags[row] & flow::FROM_KNOWN) != 0 && filter.selects_ip(room.from_ip[row])) ||
               ((room.flags[row] & flow::TO_KNOWN) != 0 && filter.selects_ip(room.to_ip[row]));
      });
    case flow::BulkRows::BLOCKS:
      return keep_rows(room, [&](std::size_t row) {
        return filter.selects_ips(room.ip[row], room.ip[row] + std::max(room.bytes[row], 1U) - 1);
      });
    default:
      return keep_rows(room, [&](std::size_t row) { return filter.selects_ip(room.ip[row]); });
  }
}

void BulkWriter::close(const flow::BulkRoom& used) {
  flow::BulkRoom room = used;
  constexpr std::uint64_t kCheapBytes = 64;  // cost as much as a packet that is decoded alone
  sink_.slice.packets += room.used_bytes / kCheapBytes;
  if (room.kind == flow::BulkRows::EVENTS) return close_events(room);
  sink_.counts.instructions += room.instructions;
  sink_.counts.order += room.events;
  if (room.number != nullptr) sink_.counts.branches += room.branches;
  if (room.kind == flow::BulkRows::NONE || room.kind == flow::BulkRows::EDGES) return;
  Batch& batch = sink_.tables.table();
  time::TimeTrack* const track = sink_.times.track();
  const std::size_t begin = batch.rows();
  fill_constants(batch, room, track == nullptr);
  if (sink_.filter.by_ip()) keep_selected_ips(room);
  const std::span<const flow::SpanRun> spans(room.spans, room.span_count);
  batch.add_offsets(spans);
  SpanCells cells = span_cells(batch);
  if (sink_.times.deferring()) {
    sink_.times.deferred().add(batch, spans);
    cells = SpanCells{.offset = cells.offset};
  }
  if (!sink_.filter.by_time()) {
    fill_spans(spans, begin, track, cells);
    return batch.add_rows(room.row - begin);
  }
  const Selection& selection = sink_.request.selection;
  filter_ = {selection.tsc_begin, selection.tsc_end, std::move(filter_.kept)};
  filter_.kept.clear();
  fill_spans(spans, begin, track, cells, &filter_);
  batch.add_rows_of(filter_.kept, room.row);
}

// Rows that RowSink::on_event() adds, column by column.
void BulkWriter::close_events(const flow::BulkRoom& room) {
  using enum Column;
  Batch& batch = sink_.tables.table();
  const std::size_t begin = batch.rows();
  const std::span<const flow::BulkEvent> events(room.event, room.row - begin);
  if (!sink_.tables.room_for(batch, events.size())) return;
  fill_events(batch, events, room.first_instruction, sink_.counts.order);
  sink_.counts.order += events.size();
  sink_.counts.instructions = room.first_instruction + room.instructions;
  if (sink_.times.track() != nullptr) return add_timed_events(events);
  fill_no_time<events_tsc, events_tsc_error, events_tsc_source>(batch, begin, room.row);
  if (!sink_.times.deferring()) return batch.add_rows(events.size());
  for (const flow::BulkEvent& one : events) {
    sink_.times.deferred().add(batch, batch, {one.offset, one.offset});
    batch.add_rows(1);
  }
}

// Adds rows of which all cells but those of times are written.
void BulkWriter::add_timed_events(std::span<const flow::BulkEvent> events) {
  using enum Column;
  Batch& batch = sink_.tables.table();
  const std::size_t begin = batch.rows();
  auto* const flags = batch.cells<events_flags>();
  filter_.kept.clear();
  visit_times(
      *sink_.times.track(), events.size(), [events](std::size_t i) { return events[i].offset; },
      [&](std::size_t i, const time::TimeRange& range) {
        const std::size_t row = begin + i;
        batch.put<events_tsc>(row, range.tsc);
        batch.put<events_tsc_error>(row, range.error);
        batch.put<events_tsc_source>(row, static_cast<std::uint8_t>(range.source));
        if (flags != nullptr && range.known) flags[row] |= std::uint16_t{flow::EV_TIME_KNOWN};
        if (sink_.filter.selects_time(range)) filter_.keep(row, row + 1);
      });
  batch.add_rows_of(filter_.kept, begin + events.size());
}

void BulkWriter::add_edges(std::span<const flow::EdgeCount> edges, std::uint32_t space, std::uint32_t phase) {
  sink_.edges.add(edges, space, phase);
}

}  // namespace ptkit::tables::columns
