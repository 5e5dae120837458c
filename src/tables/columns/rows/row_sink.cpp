#include "tables/columns/rows/row_sink.h"

#include <algorithm>

namespace ptkit::tables::columns {
namespace {

// Unknown ids are 0, and their flag is clear.
[[nodiscard]] std::int32_t id_cell(std::int64_t id) noexcept {
  return id == trace::kNoId ? 0 : static_cast<std::int32_t>(id);
}

}  // namespace

RowSink::RowSink(const Request& request, const std::atomic<bool>& cancelled)
    : request_(request), cancelled_(cancelled) {
  rows_need_time_ = request.selection.by_time || request.estimate || rows_have_time(tables_.table());
  if (request.marks_limits()) limits_ = request.bins.size();
}

void RowSink::begin_stream(std::uint32_t index, const trace::Stream& stream, time::TimeTrack* track,
                           bool is_continued) {
  continue_at({}, track);
  stream_ = &stream;
  next_switch_ = 0;
  run_.stream = index;
  begin_phase(Phase::by_row(), 0);
  if (track != nullptr || request_.estimate) tables_.expect_times();
  flow::Context context;
  context.space = stream.space;
  context.cpu = stream.cpu;
  if (stream.switches.empty()) {
    context.pid = stream.pid;
    context.tid = stream.tid;
  }
  if (is_continued) return on_continued(context);
  on_context(context);
}

void RowSink::continue_at(const RowCounts& counts, time::TimeTrack* track) noexcept {
  times_.follow(track);
  counts_ = counts;
}

void RowSink::begin_estimates(std::unique_ptr<time::TimeTrack> track) {
  estimates_.begin_stream(std::move(track));
}

void RowSink::end_estimates() {
  if (request_.estimate) estimates_.end_stream(tables_.table());
}

// Estimates the newest rows of the main table.
void RowSink::estimate_rows(std::size_t rows, std::uint64_t first_retired, const time::TimeRange& range) {
  Batch& batch = tables_.table();
  if (!request_.estimate) {
    if (auto* const cells = estimate_cells(batch))
      std::fill(cells + batch.rows() - rows, cells + batch.rows(), 0);
    return;
  }
  for (std::size_t i = 0; i < rows; ++i) estimates_.add_row(first_retired + i, range);
  estimates_.fill(batch);
}

bool RowSink::finish() { return request_.table != TableId::edges || edges_.move_to(tables_.table()); }

bool RowSink::full() const {
  return ++slice_.packets >= slice_.packet_limit || tables_.table().rows() >= slice_.row_limit ||
         out_of_memory() || cancelled_.load(std::memory_order_relaxed) || stopped_;
}

bool RowSink::cancelled() const {
  if (go_on_ != nullptr && *go_on_ && !(*go_on_)()) stopped_ = true;
  return stopped_ || cancelled_.load(std::memory_order_relaxed);
}

void RowSink::on_context(const flow::Context& context) {
  const bool is_first = tables_.table().runs().empty() && tables_.table().rows() == 0;
  if (request_.marks && !is_first) add_mark(MARK_LEAVE, {context.offset, context.offset}, 0);
  on_continued(context);
  if (request_.marks) add_mark(MARK_CONTEXT, {context.offset, context.offset}, 0);
}

void RowSink::on_continued(const flow::Context& context) {
  run_.cpu = id_cell(context.cpu);
  run_.pid = id_cell(context.pid);
  run_.tid = id_cell(context.tid);
  run_.space = context.space;
  run_.flags = 0;
  if (context.cpu != trace::kNoId) run_.flags |= std::uint8_t{CPU_KNOWN};
  if (context.tid != trace::kNoId) run_.flags |= std::uint8_t{TID_KNOWN};
  filter_.follow(context);
  tables_.begin_run(run_);
}

// Adds a row that stands between branches.
void RowSink::add_mark(MarkKind kind, const flow::StreamSpan& span, std::uint64_t to_ip, std::uint8_t flags) {
  if (kind != MARK_LIMIT) pass_limits(span, 0);
  if (!filter_.selects_context() && kind != MARK_LIMIT) return;
  Batch& batch = tables_.table();
  const auto range = row_time(span);
  if (!tables_.room_for(batch, 1)) return;
  flow::Branch mark;
  mark.span = span;
  mark.to_ip = to_ip;
  mark.kind = static_cast<flow::BranchKind>(kind);
  mark.flags = flags;
  mark.in_block = false;
  add_row(batch, mark, counts_, range);
}

void RowSink::mark_limits(const flow::StreamSpan& span, std::uint64_t instructions) {
  const std::uint64_t now = counts_.instructions;
  const bool by_time = !request_.by_instructions();
  const time::TimeRange range = by_time ? row_time(span) : time::TimeRange{};
  for (; counts_.limits < limits_; ++counts_.limits) {
    const std::uint64_t limit = request_.bins[counts_.limits];
    if (by_time ? !range.known || range.tsc < limit : limit >= now + instructions) break;
    if (!by_time) counts_.instructions = std::max(now, limit);
    add_mark(MARK_LIMIT, span, counts_.limits);
  }
  counts_.instructions = now;
}

// The thread of a packet follows from its time or offset.
void RowSink::follow_switches(const packet::Packet& packet, const time::TimeRange& range) {
  const auto& switches = stream_->switches;
  const bool by_offset = stream_->switches_by_offset;
  if (!by_offset && !range.known) return;
  const std::size_t before = next_switch_;
  while (next_switch_ < switches.size() && (by_offset ? switches[next_switch_].offset <= packet.offset
                                                      : switches[next_switch_].tsc <= range.tsc))
    ++next_switch_;
  if (next_switch_ == before) return;
  const trace::Switch& now = switches[next_switch_ - 1];
  on_context({0, now.space, stream_->cpu, now.pid, now.tid});
}

time::TimeRange RowSink::row_time(flow::StreamSpan span) {
  return rows_need_time_ ? times_.at(span, tables_.table(), tables_.table()) : time::TimeRange{};
}

void RowSink::on_packet(const packet::Packet& packet) {
  Batch& batch = tables_.table();
  const auto range = times_.at({packet.offset, packet.offset}, batch, batch);
  if (request_.context) follow_switches(packet, range);
  if (!filter_.selects(packet) || !filter_.selects_time(range) || !tables_.room_for(batch, 1)) return;
  add_row(batch, packet, range);
}

bool RowSink::takes_packets_in_bulk() const noexcept {
  const bool follows = (times_.track() != nullptr || stream_->switches_by_offset) && request_.context &&
                       !stream_->switches.empty();
  return !follows && filter_.selects_context() && !filter_.by_time() && !filter_.by_ip();
}

packet::FilledPackets RowSink::fill_packets(base::Bytes stream, packet::DecoderState& state,
                                            const packet::Errata& errata) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 16U;
  const auto bytes_left = static_cast<std::size_t>(stream.size() - state.position);
  const std::size_t most = std::min({room(), kMostAtOnce, bytes_left + 1});
  Batch& batch = tables_.table();
  if (!tables_.room_for(batch, most + packet::kPacketRowSlack)) return {};
  return packet_rows_.fill(batch, stream, state, errata, most, times_.track());
}

void RowSink::on_block(const flow::Block& block) {
  pass_limits(block.span, block.insns.size());
  estimates_.pass(block.span, counts_.instructions + block.insns.size());
  if (filter_.selects_context()) {
    if (request_.table == TableId::blocks) put_block(block);
    if (request_.table == TableId::instructions) put_instructions(block);
    if (request_.counts_blocks) count_block(block);
  }
  counts_.instructions += block.insns.size();
}

void RowSink::on_straight_code(const flow::StreamSpan& span, std::uint64_t instructions) {
  pass_limits(span, instructions);
  estimates_.pass(span, counts_.instructions + instructions);
  counts_.instructions += instructions;
}

void RowSink::mark_event(const flow::Event& event) {
  using enum flow::EventKind;
  const bool is_status = event.kind == OVERFLOW || (event.flags & flow::EV_STATUS) != 0;
  if ((event.kind == DISABLED || event.kind == ASYNC_DISABLED) && !is_status)
    add_mark(MARK_DISABLED, event.span, 0);
  // A PSB+ that repeats what is known has no mark: the fast path passes over most of them.
  if (is_status && event.kind != OVERFLOW && !event.finds_flow) return;
  if ((event.kind == ENABLED || event.kind == OVERFLOW) && ip_known(event))
    add_mark(is_status ? MARK_STATUS : MARK_ENABLED, event.span, event.ip, flow::TO_KNOWN);
}

void RowSink::put_block(const flow::Block& block) {
  Batch& batch = tables_.table();
  const auto range = row_time(block.span);
  const std::uint64_t last = block.ip + (block.size == 0 ? 0 : block.size - 1);
  if (!filter_.selects_time(range) || !filter_.selects_ips(block.ip, last) || !tables_.room_for(batch, 1))
    return;
  add_row(batch, block, counts_, range);
  estimate_rows(1, counts_.instructions + block.insns.size(), range);
}

void RowSink::count_block(const flow::Block& block) {
  const auto range = row_time(block.span);
  if (!filter_.selects_time(range)) return;
  edges_.add(block, run_.space, request_.by_instructions() ? counts_.instructions : range.tsc);
}

void RowSink::put_instructions(const flow::Block& block) {
  const auto range = row_time(block.span);
  if (!filter_.selects_time(range)) return;
  if (!filter_.by_ip()) {
    put_some_instructions(block, {0, block.insns.size()}, block.ip, range);
    return;
  }
  std::uint64_t ip = block.ip;
  for (std::size_t i = 0; i < block.insns.size(); ++i) {
    if (filter_.selects_ip(ip)) put_some_instructions(block, {i, 1}, ip, range);
    ip += block.insns[i].size;
  }
}

void RowSink::put_some_instructions(const flow::Block& block, InsnSpan span, std::uint64_t ip,
                                    const time::TimeRange& range) {
  if (!tables_.room_for(tables_.table(), span.count)) return;
  add_rows(tables_.table(), block, span, ip, counts_, range);
  estimate_rows(span.count, counts_.instructions + span.first + 1, range);
}

void RowSink::on_branch(const flow::Branch& branch) {
  pass_limits(branch.span, 0);
  estimates_.pass(branch.span, counts_.instructions);
  const RowCounts before = counts_;
  ++counts_.branches;
  const bool edges = request_.table == TableId::edges;
  if (!edges && request_.table != TableId::branches) return;
  // Edges are selected by their addresses when all are counted.
  if (edges ? !filter_.chooses(branch) : !filter_.selects(branch)) return;
  const auto range = row_time(branch.span);
  if (!filter_.selects_time(range)) return;
  if (edges) {
    const std::uint64_t instructions = instructions_before(branch, counts_);
    return edges_.add(branch, run_.space, request_.by_instructions() ? instructions : range.tsc);
  }
  Batch& batch = tables_.table();
  if (!tables_.room_for(batch, 1)) return;
  add_row(batch, branch, before, range);
  estimate_rows(1, counts_.instructions, range);
}

void RowSink::on_event(const flow::Event& event) {
  const bool off_before = event.kind == flow::EventKind::ENABLED || event.kind == flow::EventKind::OVERFLOW;
  if (off_before && (event.flags & flow::EV_STATUS) == 0) estimates_.pause(counts_.instructions);
  estimates_.pass(event.span, counts_.instructions);
  const RowCounts before = counts_;
  ++counts_.order;
  if (request_.marks) mark_event(event);
  Batch* batch = tables_.find(TableId::events);
  if (batch == nullptr || !filter_.selects(event)) return;
  const auto range = times_.at(event.span, *batch, *batch);
  if (!filter_.selects_time(range) || !tables_.room_for(*batch, 1)) return;
  add_row(*batch, event, before, range);
  estimate_rows(1, before.instructions, range);
}

template <typename Row>
bool RowSink::keeps(const Row& row, const time::TimeRange& range, TableId table) const noexcept {
  const bool all = request_.table != table && !request_.select_sides;
  return all || (filter_.selects(row) && filter_.selects_time(range));
}

void RowSink::on_error(const flow::FlowError& error) {
  if (Batch* const batch = tables_.find(TableId::errors)) {
    const auto range = times_.at(error.span, tables_.table(), *batch);
    if (keeps(error, range, TableId::errors) && tables_.room_for_side_row(*batch))
      add_row(*batch, error, counts_, range);
  }
  ++counts_.order;
}

void RowSink::on_gap(const flow::Gap& gap) {
  if (Batch* const batch = tables_.find(TableId::gaps)) {
    const auto range = times_.at({gap.end, gap.end}, tables_.table(), *batch);
    if (keeps(gap, range, TableId::gaps) && tables_.room_for_side_row(*batch))
      add_row(*batch, gap, *stream_, counts_, range);
  }
  ++counts_.order;
  const auto to_known = static_cast<std::uint8_t>(gap.flags & flow::TO_KNOWN);
  if (request_.marks) add_mark(MARK_GAP, {gap.end, gap.end}, gap.to_ip, to_known);
}

void RowSink::continue_counts_from(const RowSink& before) noexcept {
  tables_.shift(before.counts_);
  counts_.instructions += before.counts_.instructions;
  counts_.branches += before.counts_.branches;
  counts_.order += before.counts_.order;
}

bool RowSink::fill_times(RowSink& next, std::size_t most) {
  bool room = true;
  const bool more = times_.fill(next.times_, next.tables_, most, room);
  if (!room) tables_.run_out_of_memory();
  return more;
}

bool RowSink::append_rest(RowSink& next) {
  edges_.add_all(next.edges_);
  counts_ = next.counts_;
  run_ = next.run_;
  filter_.follow(next.filter_);
  tables_.begin_run(run_);
  return !out_of_memory();
}

}  // namespace ptkit::tables::columns
