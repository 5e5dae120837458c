#include "tables/columns/rows/packet_rows.h"

#include "tables/columns/rows/bulk_cells.h"

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

}  // namespace

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
