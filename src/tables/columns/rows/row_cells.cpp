#include "tables/columns/rows/row_cells.h"

#include <algorithm>
#include <numeric>

#include "trace/branch_record.h"

namespace ptkit::tables::columns {
namespace {

[[nodiscard]] std::uint8_t with(std::uint8_t flags, bool set, std::uint8_t bit) noexcept {
  return set ? static_cast<std::uint8_t>(flags | bit) : flags;
}

// The three time columns of any table.
template <Column TSC, Column ERROR, Column SOURCE>
void put_time(Batch& batch, std::size_t row, const time::TimeRange& range) noexcept {
  batch.put<TSC>(row, range.tsc);
  batch.put<ERROR>(row, range.error);
  batch.put<SOURCE>(row, static_cast<std::uint8_t>(range.source));
}

// The loss is where the gap begins, or within the gap. Nothing is missing where control flow is known again.
[[nodiscard]] std::uint64_t lost_bytes(const flow::Gap& gap, const trace::Stream& stream) noexcept {
  const auto& losses = stream.losses;
  const bool counted = stream.kind == trace::StreamKind::BRANCH_RECORDS;
  const auto position_of = [counted](const trace::KnownLoss& one) {
    return counted ? trace::record_number(one.offset) : one.offset;
  };
  auto loss = std::lower_bound(
      losses.begin(), losses.end(), gap.begin,
      [&](const trace::KnownLoss& one, std::uint64_t offset) { return position_of(one) < offset; });
  std::uint64_t sum = 0;
  for (; loss != losses.end() && (position_of(*loss) < gap.end || position_of(*loss) == gap.begin); ++loss)
    sum += loss->lost_bytes;
  return sum;
}

}  // namespace

void add_row(Batch& batch, const packet::Packet& packet, const time::TimeRange& range) noexcept {
  const std::size_t row = batch.rows();
  batch.put<Column::packets_offset>(row, packet.offset);
  batch.put<Column::packets_size>(row, packet.size);
  batch.put<Column::packets_kind>(row, static_cast<std::uint8_t>(packet.kind));
  batch.put<Column::packets_flags>(row, with(packet.flags, range.known, packet::Packet::TIME_KNOWN));
  batch.put<Column::packets_ip>(row, packet.ip);
  batch.put<Column::packets_payload>(row, packet.payload);
  batch.put<Column::packets_payload2>(row, packet.payload2);
  put_time<Column::packets_tsc, Column::packets_tsc_error, Column::packets_tsc_source>(batch, row, range);
  batch.add_rows(1);
}

void add_row(Batch& batch, const flow::Block& block, const RowCounts& before,
             const time::TimeRange& range) noexcept {
  const std::size_t row = batch.rows();
  batch.put<Column::blocks_ip>(row, block.ip);
  batch.put<Column::blocks_size>(row, block.size);
  batch.put<Column::blocks_instructions>(row, static_cast<std::int32_t>(block.insns.size()));
  batch.put<Column::blocks_mode>(row, static_cast<std::uint8_t>(block.mode));
  batch.put<Column::blocks_flags>(row, with(block.flags, range.known, flow::TIME_KNOWN));
  put_time<Column::blocks_tsc, Column::blocks_tsc_error, Column::blocks_tsc_source>(batch, row, range);
  batch.put<Column::blocks_offset>(row, block.span.offset);
  batch.put<Column::blocks_instruction>(row, before.instructions);
  batch.add_rows(1);
}

void add_row(Batch& batch, const flow::Branch& branch, const RowCounts& before,
             const time::TimeRange& range) noexcept {
  const std::size_t row = batch.rows();
  batch.put<Column::branches_from_ip>(row, branch.from_ip);
  batch.put<Column::branches_to_ip>(row, branch.to_ip);
  batch.put<Column::branches_kind>(row, static_cast<std::uint8_t>(branch.kind));
  batch.put<Column::branches_flags>(row, with(branch.flags, range.known, flow::TIME_KNOWN));
  put_time<Column::branches_tsc, Column::branches_tsc_error, Column::branches_tsc_source>(batch, row, range);
  batch.put<Column::branches_offset>(row, branch.span.offset);
  batch.put<Column::branches_instruction>(row, instructions_before(branch, before));
  batch.put<Column::branches_number>(row, before.branches);
  batch.add_rows(1);
}

void add_row(Batch& batch, const flow::Event& event, const RowCounts& before,
             const time::TimeRange& range) noexcept {
  const std::size_t row = batch.rows();
  const auto time_flag = range.known ? flow::EV_TIME_KNOWN : 0;
  batch.put<Column::events_kind>(row, static_cast<std::uint8_t>(event.kind));
  batch.put<Column::events_ip>(row, event.ip);
  batch.put<Column::events_payload>(row, event.payload);
  batch.put<Column::events_payload2>(row, event.payload2);
  batch.put<Column::events_payload3>(row, event.payload3);
  batch.put<Column::events_flags>(row, static_cast<std::uint16_t>(event.flags | time_flag));
  put_time<Column::events_tsc, Column::events_tsc_error, Column::events_tsc_source>(batch, row, range);
  batch.put<Column::events_offset>(row, event.span.offset);
  batch.put<Column::events_instruction>(row, before.instructions);
  batch.put<Column::events_order>(row, before.order);
  batch.add_rows(1);
}

void add_row(Batch& batch, const flow::FlowError& error, const RowCounts& before,
             const time::TimeRange& range) noexcept {
  const std::size_t row = batch.rows();
  auto flags = with(0, error.ip_known, ERROR_IP_KNOWN);
  flags = with(flags, error.file >= 0, ERROR_FILE_KNOWN);
  batch.put<Column::errors_code>(row, static_cast<std::uint8_t>(error.code));
  batch.put<Column::errors_offset>(row, error.span.offset);
  batch.put<Column::errors_ip>(row, error.ip);
  batch.put<Column::errors_flags>(row, with(flags, range.known, ERROR_TIME_KNOWN));
  batch.put<Column::errors_argument>(row, error.argument);
  batch.put<Column::errors_argument2>(row, error.argument2);
  batch.put<Column::errors_file>(row, error.file >= 0 ? error.file : 0);
  put_time<Column::errors_tsc, Column::errors_tsc_error, Column::errors_tsc_source>(batch, row, range);
  batch.put<Column::errors_instruction>(row, before.instructions);
  batch.put<Column::errors_order>(row, before.order);
  batch.add_rows(1);
}

void add_row(Batch& batch, const flow::Gap& gap, const trace::Stream& stream, const RowCounts& before,
             const time::TimeRange& range) noexcept {
  const std::size_t row = batch.rows();
  batch.put<Column::gaps_cause>(row, static_cast<std::uint8_t>(gap.cause));
  batch.put<Column::gaps_code>(row, static_cast<std::uint8_t>(gap.code));
  batch.put<Column::gaps_begin>(row, gap.begin);
  batch.put<Column::gaps_end>(row, gap.end);
  batch.put<Column::gaps_from_ip>(row, gap.from_ip);
  batch.put<Column::gaps_to_ip>(row, gap.to_ip);
  batch.put<Column::gaps_lost_bytes>(row, lost_bytes(gap, stream));
  batch.put<Column::gaps_flags>(row, with(gap.flags, range.known, flow::TIME_KNOWN));
  put_time<Column::gaps_tsc, Column::gaps_tsc_error, Column::gaps_tsc_source>(batch, row, range);
  batch.put<Column::gaps_instruction>(row, before.instructions);
  batch.put<Column::gaps_order>(row, before.order);
  batch.add_rows(1);
}

void add_rows(Batch& batch, const flow::Block& block, InsnSpan span, std::uint64_t ip,
              const RowCounts& before, const time::TimeRange& range) noexcept {
  const auto insns = block.insns.subspan(span.first, span.count);
  const std::size_t row = batch.rows();
  const std::size_t count = insns.size();
  if (auto* ips = batch.cells<Column::instructions_ip>()) {
    for (std::size_t i = 0; i < count; ++i) {
      ips[row + i] = ip;
      ip += insns[i].size;
    }
  }
  if (auto* sizes = batch.cells<Column::instructions_size>()) {
    for (std::size_t i = 0; i < count; ++i) sizes[row + i] = insns[i].size;
  }
  if (auto* classes = batch.cells<Column::instructions_cls>()) {
    for (std::size_t i = 0; i < count; ++i) classes[row + i] = static_cast<std::uint8_t>(insns[i].cls);
  }
  if (auto* cells = batch.counts<Column::instructions_instruction>())
    std::iota(cells + row, cells + row + count, before.instructions + span.first);
  const std::size_t end = row + count;
  batch.fill<Column::instructions_mode>(row, end, static_cast<std::uint8_t>(block.mode));
  batch.fill<Column::instructions_flags>(row, end, with(block.flags, range.known, flow::TIME_KNOWN));
  batch.fill<Column::instructions_tsc>(row, end, range.tsc);
  batch.fill<Column::instructions_tsc_error>(row, end, range.error);
  batch.fill<Column::instructions_tsc_source>(row, end, static_cast<std::uint8_t>(range.source));
  batch.fill<Column::instructions_offset>(row, end, block.span.offset);
  batch.add_rows(count);
}

}  // namespace ptkit::tables::columns
