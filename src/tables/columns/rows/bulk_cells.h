// Cells of rows in bulk: which of them the fast path writes, and the others; rows of packets.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flow/rows/bulk.h"
#include "packet/scan.h"
#include "tables/columns/batch.h"
#include "tables/columns/rows/row_counts.h"
#include "time/track.h"

namespace ptkit::tables::columns {

// The rows that the fast path can write for a table.
[[nodiscard]] flow::BulkRows bulk_rows_of(TableId table) noexcept;

// Sets the columns of `room`, of which room.kind is BRANCHES, BLOCKS or INSTRUCTIONS.
void set_columns(flow::BulkRoom& room, Batch& batch) noexcept;

// Fills the columns of the rows from the batch's end on that need no packet: mode, instruction number, flags,
// estimate. If `timeless`, also the columns of time: no time is known.
void fill_constants(Batch& batch, const flow::BulkRoom& room, bool timeless) noexcept;

// Fills the cells of the rows of events from the batch's end on, without their times.
void fill_events(Batch& batch, std::span<const flow::BulkEvent> events, std::uint64_t first_instruction,
                 std::uint64_t order) noexcept;

// No time is known.
template <Column TSC, Column ERROR, Column SOURCE>
void fill_no_time(Batch& batch, std::size_t begin, std::size_t end) noexcept {
  batch.fill<TSC>(begin, end, 0);
  batch.fill<ERROR>(begin, end, 0);
  batch.fill<SOURCE>(begin, end, static_cast<std::uint8_t>(time::TimeSource::NONE));
}

// Calls visit(i, range) with the time of each packet: offset_of(i) is its stream offset. Offsets ascend.
template <typename OffsetOf, typename Visit>
void visit_times(time::TimeTrack& track, std::size_t count, const OffsetOf& offset_of, const Visit& visit) {
  constexpr std::size_t kAtOnce = 256;
  std::array<time::TimeQuery, kAtOnce> queries;
  std::array<time::TimeRange, kAtOnce> ranges;
  for (std::size_t first = 0; first < count; first += kAtOnce) {
    const std::size_t some = std::min(kAtOnce, count - first);
    for (std::size_t i = 0; i < some; ++i) {
      const std::uint64_t offset = offset_of(first + i);
      queries[i] = {offset, offset};
    }
    track.at(std::span(queries).first(some), ranges.data());
    for (std::size_t i = 0; i < some; ++i) visit(first + i, ranges[i]);
  }
}

// Rows of packets.
class PacketRows {
 public:
  // Adds up to `most` rows of the packets from `state` on. The batch must have room for
  // packet::kPacketRowSlack more. `track` may be null. Makes the same queries of it as rows one by one, in
  // the same order.
  [[nodiscard]] packet::FilledPackets fill(Batch& batch, base::Bytes stream, packet::DecoderState& state,
                                           const packet::Errata& errata, std::size_t most,
                                           time::TimeTrack* track);

 private:
  std::vector<std::uint64_t> offsets_;  // if there is no column of offsets
};

}  // namespace ptkit::tables::columns
