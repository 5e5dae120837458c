// The cells of rows: one function for each table writes a row, and adds it. The table must have room.
#pragma once

#include "flow/rows/rows.h"
#include "packet/packet.h"
#include "tables/columns/batch.h"
#include "tables/columns/rows/row_counts.h"
#include "time/track.h"
#include "trace/bundle.h"

namespace ptkit::tables::columns {

struct InsnSpan {  // instructions of a block
  std::size_t first = 0;
  std::size_t count = 0;
};

void add_row(Batch& batch, const packet::Packet& packet, const time::TimeRange& range) noexcept;
void add_row(Batch& batch, const flow::Block& block, const RowCounts& before,
             const time::TimeRange& range) noexcept;
void add_row(Batch& batch, const flow::Branch& branch, const RowCounts& before,
             const time::TimeRange& range) noexcept;
void add_row(Batch& batch, const flow::Event& event, const RowCounts& before,
             const time::TimeRange& range) noexcept;
void add_row(Batch& batch, const flow::FlowError& error, const RowCounts& before,
             const time::TimeRange& range) noexcept;
// `stream` has the losses within the gap.
void add_row(Batch& batch, const flow::Gap& gap, const trace::Stream& stream, const RowCounts& before,
             const time::TimeRange& range) noexcept;
// Rows of the table of instructions. `ip` is the address of the first one.
void add_rows(Batch& batch, const flow::Block& block, InsnSpan span, std::uint64_t ip,
              const RowCounts& before, const time::TimeRange& range) noexcept;

// Instructions of the stream before a branch. `counts` include the branch, if it is an instruction.
[[nodiscard]] inline std::uint64_t instructions_before(const flow::Branch& branch,
                                                       const RowCounts& counts) noexcept {
  return counts.instructions - (branch.is_counted() ? 1 : 0);
}

}  // namespace ptkit::tables::columns
