#include "tables/columns/rows/bulk_cells.h"

#include <numeric>

namespace ptkit::tables::columns {
namespace {

void fill_times(Batch& batch, time::TimeTrack* track, const std::uint64_t* offsets, std::size_t rows) {
  using enum Column;
  const std::size_t begin = batch.rows();
  if (track == nullptr)
    return fill_no_time<packets_tsc, packets_tsc_error, packets_tsc_source>(batch, begin, begin + rows);
  auto* const tsc = batch.cells<packets_tsc>();
  auto* const error = batch.cells<packets_tsc_error>();
  auto* const source = batch.cells<packets_tsc_source>();
  auto* const flags = batch.cells<packets_flags>();
  visit_times(
      *track, rows, [offsets](std::size_t i) { return offsets[i]; },
      [&](std::size_t i, const time::TimeRange& range) {
        const std::size_t row = begin + i;
        if (tsc != nullptr) tsc[row] = range.tsc;
        if (error != nullptr) error[row] = range.error;
        if (source != nullptr) source[row] = static_cast<std::uint8_t>(range.source);
        if (flags != nullptr && range.known) flags[row] |= std::uint8_t{packet::Packet::TIME_KNOWN};
      });
}

// Writes value(event) for each event, from row `row` on.
template <Column C, typename Value>
void put_events(Batch& batch, std::size_t row, std::span<const flow::BulkEvent> events,
                Value value) noexcept {
  auto* const cells = batch.cells<C>();
  if (cells == nullptr) return;
  for (std::size_t i = 0; i < events.size(); ++i) cells[row + i] = static_cast<Cell<C>>(value(events[i]));
}

}  // namespace

flow::BulkRows bulk_rows_of(TableId table) noexcept {
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

void set_columns(flow::BulkRoom& room, Batch& batch) noexcept {
  switch (room.kind) {
    case flow::BulkRows::BRANCHES:
      room.from_ip = batch.cells<Column::branches_from_ip>();
      room.to_ip = batch.cells<Column::branches_to_ip>();
      room.branch = batch.cells<Column::branches_kind>();
      room.flags = batch.cells<Column::branches_flags>();
      room.instruction = batch.counts<Column::branches_instruction>();
      room.number = batch.counts<Column::branches_number>();
      return;
    case flow::BulkRows::BLOCKS:
      room.ip = batch.cells<Column::blocks_ip>();
      room.bytes = batch.cells<Column::blocks_size>();
      room.insns = batch.counts<Column::blocks_instructions>();
      room.instruction = batch.counts<Column::blocks_instruction>();
      return;
    default:
      room.ip = batch.cells<Column::instructions_ip>();
      room.size = batch.cells<Column::instructions_size>();
      room.cls = batch.cells<Column::instructions_cls>();
      return;
  }
}

void fill_constants(Batch& batch, const flow::BulkRoom& room, bool timeless) noexcept {
  using enum Column;
  const std::size_t begin = batch.rows();
  const std::size_t end = room.row;
  const auto mode = static_cast<std::uint8_t>(room.mode);
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
      if (auto* const cells = batch.counts<instructions_instruction>())
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

void fill_events(Batch& batch, std::span<const flow::BulkEvent> events, std::uint64_t first_instruction,
                 std::uint64_t order) noexcept {
  using enum Column;
  const std::size_t begin = batch.rows();
  put_events<events_kind>(batch, begin, events, [](const auto& one) { return one.kind; });
  put_events<events_ip>(batch, begin, events, [](const auto& one) { return one.ip; });
  put_events<events_payload>(batch, begin, events, [](const auto&) { return 0; });
  put_events<events_payload2>(batch, begin, events, [](const auto&) { return 0; });
  put_events<events_payload3>(batch, begin, events, [](const auto&) { return 0; });
  put_events<events_flags>(batch, begin, events, [](const auto& one) { return one.flags; });
  put_events<events_offset>(batch, begin, events, [](const auto& one) { return one.offset; });
  put_events<events_instruction>(batch, begin, events, [first_instruction](const auto& one) {
    return first_instruction + one.instructions;
  });
  put_events<events_order>(batch, begin, events, [order](const auto&) mutable { return order++; });
  batch.fill<events_tsc_estimate>(begin, begin + events.size(), 0);
}

packet::FilledPackets PacketRows::fill(Batch& batch, base::Bytes stream, packet::DecoderState& state,
                                       const packet::Errata& errata, std::size_t most,
                                       time::TimeTrack* track) {
  packet::PacketColumns columns =
      packet::PacketColumns{batch.cells<Column::packets_offset>(),  batch.cells<Column::packets_size>(),
                            batch.cells<Column::packets_kind>(),    batch.cells<Column::packets_flags>(),
                            batch.cells<Column::packets_ip>(),      batch.cells<Column::packets_payload>(),
                            batch.cells<Column::packets_payload2>()}
          .from(batch.rows());
  if (track != nullptr && columns.offset == nullptr) {
    offsets_.resize(most + packet::kPacketRowSlack);
    columns.offset = offsets_.data();
  }
  auto filled = packet::fill_packets(stream, state, errata, columns, most);
  fill_times(batch, track, columns.offset, filled.rows);
  batch.add_rows(filled.rows);
  return filled;
}

}  // namespace ptkit::tables::columns
