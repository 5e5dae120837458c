#include "columns/rows/row_sink.h"

#include <algorithm>
#include <numeric>

namespace ptkit::columns {
namespace {

[[nodiscard]] std::uint8_t with(std::uint8_t flags, bool set, std::uint8_t bit) noexcept {
  return set ? static_cast<std::uint8_t>(flags | bit) : flags;
}

[[nodiscard]] bool has_any(const std::vector<std::int64_t>& wanted, std::int64_t id) noexcept {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), id) != wanted.end();
}

// Unknown ids are 0, and their flag is clear.
[[nodiscard]] std::int32_t id_cell(std::int64_t id) noexcept {
  return id == trace::kNoId ? 0 : static_cast<std::int32_t>(id);
}

// The three time columns of any table.
template <Column TSC, Column ERROR, Column SOURCE>
void put_time(Batch& batch, std::size_t row, const time::TimeRange& range) noexcept {
  batch.put<TSC>(row, range.tsc);
  batch.put<ERROR>(row, range.error);
  batch.put<SOURCE>(row, static_cast<std::uint8_t>(range.source));
}

template <Column... COLUMNS>
[[nodiscard]] bool wants_any(const Batch& batch) noexcept {
  return (batch.wants(COLUMNS) || ...);
}

// The columns of which the values differ from row to row if rows have times.
[[nodiscard]] ColumnMask time_columns(TableId table) noexcept {
  ColumnMask mask = 0;
  const auto columns = columns_of(table);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name.starts_with("tsc") || columns[i].name == "flags") mask |= ColumnMask{1} << i;
  }
  return mask & uniform_candidates(table);
}

// True if each row has a time. Otherwise rows must not query it, because rows in bulk do not, either.
[[nodiscard]] bool rows_have_time(const Batch& batch) noexcept {
  switch (batch.table()) {
    case TableId::edges:
      return false;
    case TableId::branches:
      return wants_any<Column::branches_tsc, Column::branches_tsc_error, Column::branches_tsc_source,
                       Column::branches_flags, Column::branches_tsc_estimate>(batch);
    case TableId::blocks:
      return wants_any<Column::blocks_tsc, Column::blocks_tsc_error, Column::blocks_tsc_source,
                       Column::blocks_flags, Column::blocks_tsc_estimate>(batch);
    case TableId::instructions:
      return wants_any<Column::instructions_tsc, Column::instructions_tsc_error,
                       Column::instructions_tsc_source, Column::instructions_flags,
                       Column::instructions_tsc_estimate>(batch);
    default:
      return true;
  }
}

}  // namespace

RowSink::RowSink(const Request& request, const std::atomic<bool>& cancelled)
    : request_(request), cancelled_(cancelled), edges_(std::max<std::size_t>(request.bins.size(), 2) - 1) {
  main_ = std::make_unique<Batch>(request.table, request.mask);
  rows_need_time_ = request.selection.by_time || rows_have_time(*main_);
  if (!request.side_tables) return;
  if (request.table != TableId::errors)
    errors_ = std::make_unique<Batch>(TableId::errors, usual_columns(TableId::errors));
  if (request.table != TableId::gaps)
    gaps_ = std::make_unique<Batch>(TableId::gaps, usual_columns(TableId::gaps));
}

void RowSink::begin_stream(std::uint32_t index, const trace::Stream& stream, time::TimeTrack* track) {
  track_ = track;
  first_bits_ = track != nullptr && track->cyc_times_first_bits();
  stream_ = &stream;
  last_place_ = {UINT64_MAX, UINT64_MAX};
  last_range_ = {};
  instruction_ = order_ = 0;
  next_switch_ = 0;
  run_.stream = index;
  begin_phase(Phase::by_row(), 0);
  expect_times(track != nullptr || request_.estimate);
  flow::Context context;
  context.space = stream.space;
  context.cpu = stream.cpu;
  if (stream.switches.empty()) {
    context.pid = stream.pid;
    context.tid = stream.tid;
  }
  on_context(context);
}

void RowSink::expect_times(bool times) {
  if (times && !main_->set_varying(time_columns(main_->table()))) out_of_memory_ = true;
}

void RowSink::continue_at(std::uint64_t instructions, std::uint64_t order, time::TimeTrack* track) noexcept {
  track_ = track;
  first_bits_ = track != nullptr && track->cyc_times_first_bits();
  last_place_ = {UINT64_MAX, UINT64_MAX};
  last_range_ = {};
  instruction_ = instructions;
  order_ = order;
}

void RowSink::begin_slice(std::size_t row_limit, std::size_t packet_limit) noexcept {
  row_limit_ = row_limit;
  packet_limit_ = packet_limit;
  packets_ = 0;
}

void RowSink::begin_estimates(std::unique_ptr<time::TimeTrack> track) {
  estimates_.begin_stream(std::move(track));
}

void RowSink::end_estimates() {
  if (request_.estimate) estimates_.end_stream(*main_);
}

// Estimates the newest rows of the main table.
void RowSink::estimate_rows(std::size_t rows, std::uint64_t first_retired, const time::TimeRange& range) {
  if (!request_.estimate) {
    if (auto* const cells = estimate_cells(*main_))
      std::fill(cells + main_->rows() - rows, cells + main_->rows(), 0);
    return;
  }
  for (std::size_t i = 0; i < rows; ++i) estimates_.add_row(first_retired + i, range);
  estimates_.fill(*main_);
}

bool RowSink::finish() {
  if (request_.table != TableId::edges) return true;
  for (std::size_t bin = 0; bin < edges_.size(); ++bin) {
    if (!edges_[bin].move_to(*main_, static_cast<std::uint32_t>(bin))) return false;
  }
  return true;
}

bool RowSink::full() const {
  return ++packets_ >= packet_limit_ || main_->rows() >= row_limit_ || out_of_memory() ||
         cancelled_.load(std::memory_order_relaxed);
}

void RowSink::on_context(const flow::Context& context) {
  run_.cpu = id_cell(context.cpu);
  run_.pid = id_cell(context.pid);
  run_.tid = id_cell(context.tid);
  run_.space = context.space;
  run_.flags = with(with(0, context.cpu != trace::kNoId, CPU_KNOWN), context.tid != trace::kNoId, TID_KNOWN);
  const Selection& selection = request_.selection;
  context_selected_ = has_any(selection.pids, context.pid) && has_any(selection.tids, context.tid);
  begin_runs();
}

void RowSink::begin_runs() {
  for (auto* batch : {&main_, &errors_, &gaps_}) {
    if (*batch != nullptr && (*batch)->table() != TableId::edges) (*batch)->begin_run(run_);
  }
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

time::TimeRange RowSink::time_at(flow::StreamSpan place, const Batch& batch) {
  if (deferring_) deferred_.add(*main_, batch, place);
  if (track_ == nullptr) return {};
  if (place != last_place_) {
    last_range_ = track_->at(query_of(place));
    last_place_ = place;
  }
  return last_range_;
}

time::TimeRange RowSink::row_time(flow::StreamSpan place) {
  return rows_need_time_ ? time_at(place, *main_) : time::TimeRange{};
}

bool RowSink::selects_time(const time::TimeRange& range) const noexcept {
  const Selection& selection = request_.selection;
  return !selection.by_time ||
         (range.known && range.tsc >= selection.tsc_begin && range.tsc < selection.tsc_end);
}

// Of a time or a number of instructions. At least edges_.size(): it is in no phase.
std::size_t RowSink::bin_of(std::uint64_t position) const noexcept {
  const auto& limits = request_.bins;
  if (limits.empty()) return 0;
  return static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), position) - limits.begin()) -
         1;
}

bool RowSink::selects_ip(std::uint64_t ip) const noexcept { return selects_ips(ip, ip); }

bool RowSink::selects_ips(std::uint64_t first, std::uint64_t last) const noexcept {
  const auto& ranges = request_.selection.ips;
  if (ranges.empty()) return true;
  return std::any_of(ranges.begin(), ranges.end(), [=, space = run_.space](const IpRange& range) {
    return range.first <= last && first <= range.last && (range.space == kEverySpace || range.space == space);
  });
}

bool RowSink::selects_branch(const flow::Branch& branch) const noexcept {
  const Selection& selection = request_.selection;
  if (!context_selected_ || !selection.branches.has(branch.kind, branch.flags)) return false;
  return selection.ips.empty() || ((branch.flags & flow::FROM_KNOWN) != 0 && selects_ip(branch.from_ip)) ||
         ((branch.flags & flow::TO_KNOWN) != 0 && selects_ip(branch.to_ip));
}

bool RowSink::room_for(Batch& batch, std::size_t rows) noexcept {
  if (!out_of_memory() && batch.reserve(rows)) return true;
  out_of_memory_ = true;
  return false;
}

Batch* RowSink::batch_for(TableId table, bool side) noexcept {
  if (!side) return main_->table() == table ? main_.get() : nullptr;
  return table == TableId::errors ? errors_.get() : gaps_.get();
}

void RowSink::on_packet(const packet::Packet& packet) {
  const auto range = time_at({packet.offset, packet.offset}, *main_);
  if (request_.context) follow_switches(packet, range);
  Batch& batch = *main_;
  if (!context_selected_ || !selects_time(range)) return;
  const bool ip_known = (packet.flags & packet::Packet::IP_KNOWN) != 0;
  if (!request_.selection.ips.empty() && !(ip_known && selects_ip(packet.ip))) return;
  if (!room_for(batch, 1)) return;
  const std::size_t row = batch.rows();
  batch.put<Column::packets_offset>(row, packet.offset);
  batch.put<Column::packets_size>(row, packet.size);
  batch.put<Column::packets_kind>(row, static_cast<std::uint8_t>(packet.kind));
  batch.put<Column::packets_flags>(row, with(packet.flags, range.known, PACKET_TIME_KNOWN));
  batch.put<Column::packets_ip>(row, packet.ip);
  batch.put<Column::packets_payload>(row, packet.payload);
  batch.put<Column::packets_payload2>(row, packet.payload2);
  put_time<Column::packets_tsc, Column::packets_tsc_error, Column::packets_tsc_source>(batch, row, range);
  batch.add_rows(1);
}

void RowSink::on_block(const flow::Block& block) {
  estimates_.pass(block.place, instruction_ + block.insns.size());
  if (context_selected_) {
    if (main_->table() == TableId::blocks) put_block(block);
    if (main_->table() == TableId::instructions) put_instructions(block);
  }
  instruction_ += block.insns.size();
}

void RowSink::put_block(const flow::Block& block) {
  Batch& batch = *main_;
  const auto range = row_time(block.place);
  const std::uint64_t last = block.ip + (block.size == 0 ? 0 : block.size - 1);
  if (!selects_time(range) || !selects_ips(block.ip, last) || !room_for(batch, 1)) return;
  const std::size_t row = batch.rows();
  batch.put<Column::blocks_ip>(row, block.ip);
  batch.put<Column::blocks_size>(row, block.size);
  batch.put<Column::blocks_instructions>(row, static_cast<std::uint32_t>(block.insns.size()));
  batch.put<Column::blocks_mode>(row, static_cast<std::uint8_t>(block.mode));
  batch.put<Column::blocks_flags>(row, with(block.flags, range.known, flow::TIME_KNOWN));
  put_time<Column::blocks_tsc, Column::blocks_tsc_error, Column::blocks_tsc_source>(batch, row, range);
  batch.put<Column::blocks_offset>(row, block.place.offset);
  batch.put<Column::blocks_instruction>(row, instruction_);
  batch.add_rows(1);
  estimate_rows(1, instruction_ + block.insns.size(), range);
}

void RowSink::put_instructions(const flow::Block& block) {
  const auto range = row_time(block.place);
  if (!selects_time(range)) return;
  if (request_.selection.ips.empty()) {
    put_some_instructions(block, {0, block.insns.size()}, block.ip, range);
    return;
  }
  std::uint64_t ip = block.ip;
  for (std::size_t i = 0; i < block.insns.size(); ++i) {
    if (selects_ip(ip)) put_some_instructions(block, {i, 1}, ip, range);
    ip += block.insns[i].size;
  }
}

void RowSink::put_some_instructions(const flow::Block& block, InsnSpan span, std::uint64_t ip,
                                    const time::TimeRange& range) {
  Batch& batch = *main_;
  const auto insns = block.insns.subspan(span.first, span.count);
  if (!room_for(batch, insns.size())) return;
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
  if (auto* cells = batch.cells<Column::instructions_instruction>())
    std::iota(cells + row, cells + row + count, instruction_ + span.first);
  const std::size_t end = row + count;
  batch.fill<Column::instructions_mode>(row, end, static_cast<std::uint8_t>(block.mode));
  batch.fill<Column::instructions_flags>(row, end, with(block.flags, range.known, flow::TIME_KNOWN));
  batch.fill<Column::instructions_tsc>(row, end, range.tsc);
  batch.fill<Column::instructions_tsc_error>(row, end, range.error);
  batch.fill<Column::instructions_tsc_source>(row, end, static_cast<std::uint8_t>(range.source));
  batch.fill<Column::instructions_offset>(row, end, block.place.offset);
  batch.add_rows(count);
  estimate_rows(count, instruction_ + span.first + 1, range);
}

void RowSink::on_branch(const flow::Branch& branch) {
  estimates_.pass(branch.place, instruction_);
  const bool edges = main_->table() == TableId::edges;
  if ((!edges && main_->table() != TableId::branches) || !selects_branch(branch)) return;
  const auto range = row_time(branch.place);
  if (!selects_time(range)) return;
  if (edges) {
    constexpr std::uint8_t kBoth = flow::FROM_KNOWN | flow::TO_KNOWN;
    if ((branch.flags & kBoth) != kBoth) return;
    const std::uint64_t before = instruction_ - (branch.is_counted() ? 1 : 0);
    const std::size_t bin = bin_of(request_.by_instructions() ? before : range.tsc);
    if (bin < edges_.size())
      edges_[bin].add({branch.from_ip, branch.to_ip, run_.space, static_cast<std::uint8_t>(branch.kind)});
    return;
  }
  Batch& batch = *main_;
  if (!room_for(batch, 1)) return;
  const std::size_t row = batch.rows();
  batch.put<Column::branches_from_ip>(row, branch.from_ip);
  batch.put<Column::branches_to_ip>(row, branch.to_ip);
  batch.put<Column::branches_kind>(row, static_cast<std::uint8_t>(branch.kind));
  batch.put<Column::branches_flags>(row, with(branch.flags, range.known, flow::TIME_KNOWN));
  put_time<Column::branches_tsc, Column::branches_tsc_error, Column::branches_tsc_source>(batch, row, range);
  batch.put<Column::branches_offset>(row, branch.place.offset);
  batch.put<Column::branches_instruction>(row, instruction_ - (branch.is_counted() ? 1 : 0));
  batch.add_rows(1);
  estimate_rows(1, instruction_, range);
}

void RowSink::on_event(const flow::Event& event) {
  const bool off_before = event.kind == flow::EventKind::ENABLED || event.kind == flow::EventKind::OVERFLOW;
  if (off_before && (event.flags & flow::EV_STATUS) == 0) estimates_.pause(instruction_);
  estimates_.pass(event.place, instruction_);
  const std::uint64_t order = order_++;
  Batch* batch = batch_for(TableId::events, false);
  if (batch == nullptr || !context_selected_) return;
  const bool ip_known = (event.flags & flow::EV_IP_KNOWN) != 0;
  if (!request_.selection.ips.empty() && !(ip_known && selects_ip(event.ip))) return;
  const auto range = time_at(event.place, *batch);
  if (!selects_time(range) || !room_for(*batch, 1)) return;
  const std::size_t row = batch->rows();
  const auto time_flag = range.known ? flow::EV_TIME_KNOWN : 0;
  batch->put<Column::events_kind>(row, static_cast<std::uint8_t>(event.kind));
  batch->put<Column::events_ip>(row, event.ip);
  batch->put<Column::events_payload>(row, event.payload);
  batch->put<Column::events_payload2>(row, event.payload2);
  batch->put<Column::events_payload3>(row, event.payload3);
  batch->put<Column::events_flags>(row, static_cast<std::uint16_t>(event.flags | time_flag));
  put_time<Column::events_tsc, Column::events_tsc_error, Column::events_tsc_source>(*batch, row, range);
  batch->put<Column::events_offset>(row, event.place.offset);
  batch->put<Column::events_instruction>(row, instruction_);
  batch->put<Column::events_order>(row, order);
  batch->add_rows(1);
  estimate_rows(1, instruction_, range);
}

void RowSink::on_error(const flow::FlowError& error) {
  const bool side = main_->table() != TableId::errors;
  Batch* batch = batch_for(TableId::errors, side);
  if (batch != nullptr) {
    const auto range = time_at(error.place, *batch);
    const bool selected = context_selected_ && selects_time(range) &&
                          (request_.selection.ips.empty() || (error.ip_known && selects_ip(error.ip)));
    if (((side && !request_.select_sides) || selected) && room_for(*batch, 1))
      put_error(*batch, error, range);
  }
  ++order_;
}

void RowSink::put_error(Batch& batch, const flow::FlowError& error, const time::TimeRange& range) {
  const std::size_t row = batch.rows();
  auto flags = with(0, error.ip_known, ERROR_IP_KNOWN);
  flags = with(flags, error.file >= 0, ERROR_FILE_KNOWN);
  batch.put<Column::errors_code>(row, static_cast<std::uint8_t>(error.code));
  batch.put<Column::errors_offset>(row, error.place.offset);
  batch.put<Column::errors_ip>(row, error.ip);
  batch.put<Column::errors_flags>(row, with(flags, range.known, ERROR_TIME_KNOWN));
  batch.put<Column::errors_argument>(row, error.argument);
  batch.put<Column::errors_argument2>(row, error.argument2);
  batch.put<Column::errors_file>(row, error.file >= 0 ? error.file : 0);
  put_time<Column::errors_tsc, Column::errors_tsc_error, Column::errors_tsc_source>(batch, row, range);
  batch.put<Column::errors_instruction>(row, instruction_);
  batch.put<Column::errors_order>(row, order_);
  batch.add_rows(1);
}

void RowSink::on_gap(const flow::Gap& gap) {
  const bool side = main_->table() != TableId::gaps;
  Batch* batch = batch_for(TableId::gaps, side);
  if (batch != nullptr) {
    const auto range = time_at({gap.end, gap.end}, *batch);
    const Selection& selection = request_.selection;
    const bool ip_selected = selection.ips.empty() ||
                             ((gap.flags & flow::FROM_KNOWN) != 0 && selects_ip(gap.from_ip)) ||
                             ((gap.flags & flow::TO_KNOWN) != 0 && selects_ip(gap.to_ip));
    const bool selected = context_selected_ && selects_time(range) && ip_selected;
    if (((side && !request_.select_sides) || selected) && room_for(*batch, 1)) put_gap(*batch, gap, range);
  }
  ++order_;
}

// The loss is where the gap begins, or within the gap. Nothing is missing where control flow is known again.
std::uint64_t RowSink::lost_bytes(const flow::Gap& gap) const noexcept {
  const auto& losses = stream_->losses;
  auto loss =
      std::lower_bound(losses.begin(), losses.end(), gap.begin,
                       [](const trace::KnownLoss& one, std::uint64_t offset) { return one.offset < offset; });
  std::uint64_t sum = 0;
  for (; loss != losses.end() && (loss->offset < gap.end || loss->offset == gap.begin); ++loss)
    sum += loss->lost_bytes;
  return sum;
}

void RowSink::put_gap(Batch& batch, const flow::Gap& gap, const time::TimeRange& range) {
  const std::size_t row = batch.rows();
  batch.put<Column::gaps_cause>(row, static_cast<std::uint8_t>(gap.cause));
  batch.put<Column::gaps_code>(row, static_cast<std::uint8_t>(gap.code));
  batch.put<Column::gaps_begin>(row, gap.begin);
  batch.put<Column::gaps_end>(row, gap.end);
  batch.put<Column::gaps_from_ip>(row, gap.from_ip);
  batch.put<Column::gaps_to_ip>(row, gap.to_ip);
  batch.put<Column::gaps_lost_bytes>(row, lost_bytes(gap));
  batch.put<Column::gaps_flags>(row, with(gap.flags, range.known, flow::TIME_KNOWN));
  put_time<Column::gaps_tsc, Column::gaps_tsc_error, Column::gaps_tsc_source>(batch, row, range);
  batch.put<Column::gaps_instruction>(row, instruction_);
  batch.put<Column::gaps_order>(row, order_);
  batch.add_rows(1);
}

}  // namespace ptkit::columns
