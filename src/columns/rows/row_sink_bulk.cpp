// Rows in bulk: the fast path writes cells, then this code fills in places and times.
#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <vector>

#include "columns/rows/row_sink.h"

namespace ptkit::columns {
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 16U;
constexpr std::size_t kMostEvents = std::size_t{1} << 12U;
constexpr std::size_t kTimesAtOnce = 256;
constexpr std::size_t kPlaces = std::size_t{1} << 11U;  // between two queries of times

[[nodiscard]] flow::BulkRows rows_of(TableId table) noexcept {
  switch (table) {
    case TableId::edges:
      return flow::BulkRows::EDGES;
    case TableId::branches:
      return flow::BulkRows::BRANCHES;
    case TableId::blocks:
      return flow::BulkRows::BLOCKS;
    case TableId::instructions:
      return flow::BulkRows::INSTRUCTIONS;
    case TableId::events:
      return flow::BulkRows::EVENTS;
    default:
      return flow::BulkRows::NONE;
  }
}

}  // namespace

// The decoder emits rows one by one if each has to be checked.
flow::BulkSink* RowSink::bulk() {
  const Selection& selection = request_.selection;
  // A count does not show the direction of a conditional branch.
  const bool by_direction = request_.table == TableId::edges && !selection.branches.both_ways();
  const bool by_row = !selection.ips.empty() || by_direction || request_.estimate;
  return by_row || request_.table == TableId::packets ? nullptr : this;
}

bool RowSink::takes_phases() const noexcept {
  const Selection& selection = request_.selection;
  return selection.by_time && selection.ips.empty() && !request_.estimate &&
         request_.table != TableId::packets &&
         (request_.table != TableId::edges || selection.branches.both_ways());
}

// Whether the selected times have no rows in bulk from there on.
bool RowSink::selects_none_at(std::uint64_t position) const noexcept {
  if (!request_.selection.by_time) return false;
  return track_ == nullptr || (phase_ == Phase::none() && position < phase_until_);
}

bool RowSink::open(flow::BulkRoom& room) {
  Batch& batch = *main_;
  const bool edges_by_time = request_.selection.by_time && batch.table() == TableId::edges;
  if (edges_by_time && (phase_.rows || room.position >= phase_until_)) return false;
  const bool selects_none = !context_selected_ || selects_none_at(room.position);
  room.kind = selects_none ? flow::BulkRows::NONE : rows_of(batch.table());
  room.space = run_.space;
  room.first_instruction = instruction_;
  room.row = batch.rows();
  room.limit = SIZE_MAX;
  if (room.kind == flow::BulkRows::EDGES) return open_edges(room);
  if (room.kind == flow::BulkRows::NONE) return true;
  room.limit = room.row + std::min(row_limit_ - std::min(row_limit_, room.row), kMostAtOnce);
  if (room.kind == flow::BulkRows::EVENTS) {
    bulk_events_.resize(kMostEvents);
    room.event = bulk_events_.data();
    room.limit = std::min(room.limit, room.row + kMostEvents);
    return true;
  }
  if (!room_for(batch, room.limit - room.row + flow::BulkRoom::kSlack)) return false;
  switch (room.kind) {
    case flow::BulkRows::BRANCHES:
      room.from_ip = batch.cells<Column::branches_from_ip>();
      room.to_ip = batch.cells<Column::branches_to_ip>();
      room.branch = batch.cells<Column::branches_kind>();
      room.flags = batch.cells<Column::branches_flags>();
      room.instruction = batch.cells<Column::branches_instruction>();
      room.choice = request_.selection.branches;
      break;
    case flow::BulkRows::BLOCKS:
      room.ip = batch.cells<Column::blocks_ip>();
      room.bytes = batch.cells<Column::blocks_size>();
      room.insns = batch.cells<Column::blocks_instructions>();
      room.instruction = batch.cells<Column::blocks_instruction>();
      break;
    default:
      room.ip = batch.cells<Column::instructions_ip>();
      room.size = batch.cells<Column::instructions_size>();
      room.cls = batch.cells<Column::instructions_cls>();
      break;
  }
  const PlaceCells cells = place_cells(batch);
  const bool needs_times = (track_ != nullptr || deferring_) && cells.any_time();
  if (needs_times || cells.offset != nullptr || request_.selection.by_time) {
    places_.resize(kPlaces);
    room.places = places_.data();
    room.place_limit = kPlaces;
    room.first_bits = first_bits_;
  }
  return true;
}

// Phases by instructions: a pass ends before it may reach the next limit, and branches around the limit are
// emitted one by one.
bool RowSink::open_edges(flow::BulkRoom& room) const noexcept {
  room.phase = static_cast<std::uint32_t>(phase_.number);
  if (!request_.by_instructions()) return true;
  const auto& limits = request_.bins;
  const auto next = std::upper_bound(limits.begin(), limits.end(), instruction_);
  // The first branch of a pass may be the instruction before it.
  if (next != limits.begin() && *(next - 1) == instruction_ && instruction_ != 0) return false;
  if (next == limits.end()) {
    room.kind = flow::BulkRows::NONE;
    return true;
  }
  if (*next - instruction_ <= flow::BulkRoom::kSlack) return false;
  room.most_instructions = *next - instruction_ - flow::BulkRoom::kSlack;
  room.phase = static_cast<std::uint32_t>(next - limits.begin()) - 1;
  return true;
}

void RowSink::close(const flow::BulkRoom& room) {
  constexpr std::uint64_t kCheapBytes = 64;  // cost as much as a packet that is decoded alone
  packets_ += room.used_bytes / kCheapBytes;
  if (room.kind == flow::BulkRows::EVENTS) return close_events(room);
  instruction_ += room.instructions;
  order_ += room.events;
  if (room.kind == flow::BulkRows::NONE || room.kind == flow::BulkRows::EDGES) return;
  const std::size_t begin = main_->rows();
  fill_constants(begin, room);
  const std::span<const flow::PlaceRun> places(room.places, room.place_count);
  PlaceCells cells = place_cells(*main_);
  if (deferring_) {
    deferred_.add(*main_, places);
    cells = PlaceCells{.offset = cells.offset};
  }
  if (!request_.selection.by_time) {
    fill_places(places, begin, track_, cells);
    return main_->add_rows(room.row - begin);
  }
  filter_ = {request_.selection.tsc_begin, request_.selection.tsc_end, std::move(filter_.kept)};
  filter_.kept.clear();
  fill_places(places, begin, track_, cells, &filter_);
  main_->add_rows_of(filter_.kept, room.row);
}

namespace {

// Writes value(event) for each event, from row `row` on.
template <Column C, typename Value>
void put_events(Batch& batch, std::size_t row, std::span<const flow::BulkEvent> events,
                Value value) noexcept {
  auto* const cells = batch.cells<C>();
  if (cells == nullptr) return;
  for (std::size_t i = 0; i < events.size(); ++i) cells[row + i] = static_cast<Cell<C>>(value(events[i]));
}

// No time is known.
template <Column TSC, Column ERROR, Column SOURCE>
void fill_no_time(Batch& batch, std::size_t begin, std::size_t end) noexcept {
  batch.fill<TSC>(begin, end, 0);
  batch.fill<ERROR>(begin, end, 0);
  batch.fill<SOURCE>(begin, end, static_cast<std::uint8_t>(time::TimeSource::NONE));
}

}  // namespace

// Rows that on_event() adds, column by column.
void RowSink::close_events(const flow::BulkRoom& room) {
  using enum Column;
  Batch& batch = *main_;
  const std::size_t begin = batch.rows();
  const std::span<const flow::BulkEvent> events(room.event, room.row - begin);
  if (!room_for(batch, events.size())) return;
  const std::uint64_t first = room.first_instruction;
  put_events<events_kind>(batch, begin, events, [](const auto& one) { return one.kind; });
  put_events<events_ip>(batch, begin, events, [](const auto& one) { return one.ip; });
  put_events<events_payload>(batch, begin, events, [](const auto&) { return 0; });
  put_events<events_payload2>(batch, begin, events, [](const auto&) { return 0; });
  put_events<events_payload3>(batch, begin, events, [](const auto&) { return 0; });
  put_events<events_flags>(batch, begin, events, [](const auto& one) { return one.flags; });
  put_events<events_offset>(batch, begin, events, [](const auto& one) { return one.offset; });
  put_events<events_instruction>(batch, begin, events,
                                 [first](const auto& one) { return first + one.instructions; });
  put_events<events_order>(batch, begin, events, [order = order_](const auto&) mutable { return order++; });
  batch.fill<events_tsc_estimate>(begin, room.row, 0);
  order_ += events.size();
  instruction_ = first + room.instructions;
  if (track_ == nullptr)
    fill_no_time<events_tsc, events_tsc_error, events_tsc_source>(batch, begin, room.row);
  if (track_ != nullptr) return add_timed_events(events);
  if (!deferring_) return batch.add_rows(events.size());
  for (const flow::BulkEvent& one : events) {
    deferred_.add(batch, batch, {one.offset, one.offset});
    batch.add_rows(1);
  }
}

// Adds rows of which all cells but those of times are written.
void RowSink::add_timed_events(std::span<const flow::BulkEvent> events) {
  using enum Column;
  Batch& batch = *main_;
  const std::size_t end = batch.rows() + events.size();
  auto* const flags = batch.cells<events_flags>();
  std::array<time::TimeQuery, kTimesAtOnce> queries;
  std::array<time::TimeRange, kTimesAtOnce> ranges;
  filter_.kept.clear();
  for (std::size_t row = batch.rows(); !events.empty();
       events = events.subspan(std::min(kTimesAtOnce, events.size()))) {
    const std::size_t count = std::min(kTimesAtOnce, events.size());
    for (std::size_t i = 0; i < count; ++i) queries[i] = {events[i].offset, events[i].offset};
    track_->at(std::span(queries).first(count), ranges.data());
    for (std::size_t i = 0; i < count; ++i, ++row) {
      batch.put<events_tsc>(row, ranges[i].tsc);
      batch.put<events_tsc_error>(row, ranges[i].error);
      batch.put<events_tsc_source>(row, static_cast<std::uint8_t>(ranges[i].source));
      if (flags != nullptr && ranges[i].known) flags[row] |= std::uint16_t{flow::EV_TIME_KNOWN};
      if (selects_time(ranges[i])) filter_.keep(row, row + 1);
    }
  }
  batch.add_rows_of(filter_.kept, end);
}

// Fills the columns that need no packet: mode, instruction number, flags, estimate. Without a track, also the
// columns of time: no time is known.
void RowSink::fill_constants(std::size_t begin, const flow::BulkRoom& room) {
  using enum Column;
  Batch& batch = *main_;
  const std::size_t end = room.row;
  const auto mode = static_cast<std::uint8_t>(room.mode);
  const bool timeless = track_ == nullptr;
  switch (batch.table()) {
    case TableId::branches:
      batch.fill<branches_tsc_estimate>(begin, end, 0);
      if (timeless) fill_no_time<branches_tsc, branches_tsc_error, branches_tsc_source>(batch, begin, end);
      return;
    case TableId::blocks:
      batch.fill<blocks_mode>(begin, end, mode);
      batch.fill<blocks_flags>(begin, end, 0);
      batch.fill<blocks_tsc_estimate>(begin, end, 0);
      if (timeless) fill_no_time<blocks_tsc, blocks_tsc_error, blocks_tsc_source>(batch, begin, end);
      return;
    case TableId::instructions:
      if (auto* const cells = batch.cells<instructions_instruction>())
        std::iota(cells + begin, cells + end, room.first_instruction);
      batch.fill<instructions_mode>(begin, end, mode);
      batch.fill<instructions_flags>(begin, end, 0);
      batch.fill<instructions_tsc_estimate>(begin, end, 0);
      if (timeless)
        fill_no_time<instructions_tsc, instructions_tsc_error, instructions_tsc_source>(batch, begin, end);
      return;
    default:
      return;
  }
}

bool RowSink::takes_packets_in_bulk() const noexcept {
  const bool follows =
      (track_ != nullptr || stream_->switches_by_offset) && request_.context && !stream_->switches.empty();
  return !follows && context_selected_ && !request_.selection.by_time && request_.selection.ips.empty();
}

packet::FilledPackets RowSink::fill_packets(base::Bytes stream, packet::DecoderState& state,
                                            const packet::Errata& errata) {
  Batch& batch = *main_;
  const auto bytes_left = static_cast<std::size_t>(stream.size() - state.position);
  const std::size_t begin = batch.rows();
  const std::size_t room = std::min({row_limit_ - std::min(row_limit_, begin), kMostAtOnce, bytes_left + 1});
  if (!room_for(batch, room + packet::kPacketRowSlack)) return {};
  packet::PacketColumns columns =
      packet::PacketColumns{batch.cells<Column::packets_offset>(),  batch.cells<Column::packets_size>(),
                            batch.cells<Column::packets_kind>(),    batch.cells<Column::packets_flags>(),
                            batch.cells<Column::packets_ip>(),      batch.cells<Column::packets_payload>(),
                            batch.cells<Column::packets_payload2>()}
          .from(begin);
  if (track_ != nullptr && columns.offset == nullptr) {
    offsets_.resize(room + packet::kPacketRowSlack);
    columns.offset = offsets_.data();
  }
  auto filled = packet::fill_packets(stream, state, errata, columns, room);
  fill_packet_times(begin, std::span(columns.offset, columns.offset == nullptr ? 0 : filled.rows),
                    filled.rows);
  batch.add_rows(filled.rows);
  return filled;
}

// Makes the same queries as on_packet(), in the same order.
void RowSink::fill_packet_times(std::size_t row, std::span<const std::uint64_t> offsets, std::size_t rows) {
  if (track_ == nullptr)
    return fill_no_time<Column::packets_tsc, Column::packets_tsc_error, Column::packets_tsc_source>(
        *main_, row, row + rows);
  auto* const tsc = main_->cells<Column::packets_tsc>();
  auto* const error = main_->cells<Column::packets_tsc_error>();
  auto* const source = main_->cells<Column::packets_tsc_source>();
  auto* const flags = main_->cells<Column::packets_flags>();
  std::array<time::TimeQuery, kTimesAtOnce> queries;
  std::array<time::TimeRange, kTimesAtOnce> ranges;
  for (; !offsets.empty(); offsets = offsets.subspan(std::min(kTimesAtOnce, offsets.size()))) {
    const std::size_t count = std::min(kTimesAtOnce, offsets.size());
    for (std::size_t i = 0; i < count; ++i) queries[i] = {offsets[i], offsets[i]};
    track_->at(std::span(queries).first(count), ranges.data());
    for (std::size_t i = 0; i < count; ++i, ++row) {
      if (tsc != nullptr) tsc[row] = ranges[i].tsc;
      if (error != nullptr) error[row] = ranges[i].error;
      if (source != nullptr) source[row] = static_cast<std::uint8_t>(ranges[i].source);
      if (flags != nullptr && ranges[i].known) flags[row] |= std::uint8_t{PACKET_TIME_KNOWN};
    }
  }
}

void RowSink::add_edges(std::span<const flow::EdgeCount> edges, std::uint32_t space, std::uint32_t phase) {
  if (phase >= edges_.size()) return;  // before the first phase
  EdgeCounter& counter = edges_[phase];
  if (request_.selection.branches == flow::BranchChoice{}) return counter.add_ordered(edges, space);
  std::vector<flow::EdgeCount> chosen;
  std::copy_if(edges.begin(), edges.end(), std::back_inserter(chosen),
               [this](const flow::EdgeCount& edge) { return request_.selection.branches.has(edge.kind); });
  counter.add_ordered(chosen, space);
}

}  // namespace ptkit::columns
