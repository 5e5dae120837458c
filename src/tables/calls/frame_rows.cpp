#include "tables/calls/frame_rows.h"

#include <algorithm>

#include "tables/columns/part_memory.h"

namespace ptkit::tables::calls {

using tables::columns::Batch;
using tables::columns::Column;

void put_row(Batch& batch, std::size_t row, const Frame& frame, std::uint64_t first_id) noexcept {
  using enum Column;
  const auto put_if = [&](FrameFlag flag, std::uint64_t value) {
    return (frame.flags & flag) != 0 ? value : 0;
  };
  batch.put<calls_id>(row, frame.id + first_id);
  batch.put<calls_parent>(row, put_if(FRAME_PARENT, frame.parent + first_id));
  batch.put<calls_entry_ip>(row, put_if(FRAME_ENTRY, frame.entry_ip));
  batch.put<calls_call_ip>(row, put_if(FRAME_CALL, frame.call_ip));
  batch.put<calls_import_ip>(row, put_if(FRAME_IMPORT, frame.import_ip));
  batch.put<calls_return_ip>(row, put_if(FRAME_RETURN, frame.return_ip));
  batch.put<calls_depth>(row, frame.depth);
  batch.put<calls_how>(row, static_cast<std::uint8_t>(frame.how));
  batch.put<calls_end_how>(row, static_cast<std::uint8_t>(frame.end_how));
  batch.put<calls_flags>(row, frame.flags);
  batch.put<calls_instructions>(row, frame.instructions);
  batch.put<calls_self_instructions>(row, frame.self_instructions);
  batch.put<calls_branches>(row, frame.branches);
  batch.put<calls_tsc>(row, frame.begin.tsc);
  batch.put<calls_tsc_error>(row, frame.begin.tsc_error);
  batch.put<calls_end_tsc>(row, frame.end.tsc);
  batch.put<calls_end_tsc_error>(row, frame.end.tsc_error);
  batch.put<calls_offset>(row, frame.begin.offset);
  batch.put<calls_end_offset>(row, frame.end.offset);
  batch.put<calls_continues>(row, put_if(FRAME_CONTINUES, frame.continues + first_id));
  batch.put<calls_untraced>(row, frame.off_cpu.untraced.least);
  batch.put<calls_untraced_error>(row, frame.off_cpu.untraced.error());
  batch.put<calls_switched>(row, frame.off_cpu.switched.least);
  batch.put<calls_switched_error>(row, frame.off_cpu.switched.error());
  batch.put<calls_lost>(row, frame.off_cpu.lost.least);
  batch.put<calls_lost_error>(row, frame.off_cpu.lost.error());
  batch.put<calls_function>(row, frame.function);
  batch.put<calls_inline_level>(row, frame.inline_level);
  batch.put<calls_instruction>(row, frame.begin.stream_instructions);
  batch.put<calls_end_instruction>(row, frame.end.stream_instructions);
}

bool add_row(Batch& batch, const Anomaly& anomaly) noexcept {
  using enum Column;
  if (!batch.reserve(1)) return false;
  const std::size_t row = batch.rows();
  unsigned flags = 0;
  if (anomaly.from_known) flags |= tables::columns::ANOMALY_FROM_KNOWN;
  if (anomaly.frame_known) flags |= tables::columns::ANOMALY_FRAME_KNOWN;
  if (anomaly.expected_known) flags |= tables::columns::ANOMALY_EXPECTED_KNOWN;
  if (anomaly.no_call_before) flags |= tables::columns::ANOMALY_NO_CALL_BEFORE;
  if (anomaly.position.time_known) flags |= tables::columns::ANOMALY_TIME_KNOWN;
  batch.put<stack_anomalies_kind>(row, static_cast<std::uint8_t>(anomaly.kind));
  batch.put<stack_anomalies_from_ip>(row, anomaly.from_ip);
  batch.put<stack_anomalies_to_ip>(row, anomaly.to_ip);
  batch.put<stack_anomalies_expected_ip>(row, anomaly.expected_ip);
  batch.put<stack_anomalies_frame>(row, anomaly.frame_known ? anomaly.frame : 0);
  batch.put<stack_anomalies_depth>(row, anomaly.depth);
  batch.put<stack_anomalies_flags>(row, static_cast<std::uint8_t>(flags));
  batch.put<stack_anomalies_tsc>(row, anomaly.position.tsc);
  batch.put<stack_anomalies_tsc_error>(row, anomaly.position.tsc_error);
  batch.put<stack_anomalies_offset>(row, anomaly.position.offset);
  batch.put<stack_anomalies_instruction>(row, anomaly.position.instructions);
  batch.add_rows(1);
  return true;
}

tables::columns::OwnerRun run_of(const Owner& owner, std::uint32_t stream) noexcept {
  const auto id = [](std::int64_t value) {
    return value == trace::kNoId ? 0 : static_cast<std::int32_t>(value);
  };
  tables::columns::OwnerRun run;
  run.stream = stream;
  run.cpu = id(owner.cpu);
  run.pid = id(owner.pid);
  run.tid = id(owner.tid);
  run.space = owner.space;
  if (owner.cpu != trace::kNoId) run.flags |= std::uint8_t{tables::columns::CPU_KNOWN};
  if (owner.tid != trace::kNoId) run.flags |= std::uint8_t{tables::columns::TID_KNOWN};
  return run;
}

bool FrameFilter::is_chosen(const Frame& frame, const Owner& owner) const noexcept {
  if (selection_.by_time) {
    const bool ends_after =
        (frame.flags & FRAME_END_TIME_KNOWN) != 0 && frame.end.tsc >= selection_.tsc_begin;
    const bool begins_before = (frame.flags & FRAME_TIME_KNOWN) != 0 && frame.begin.tsc < selection_.tsc_end;
    if (!ends_after || !begins_before) return false;
  }
  return ips_.empty() || ((frame.flags & FRAME_ENTRY) != 0 && ips_.has(frame.entry_ip, owner.space));
}

bool FrameFilter::selects(const Anomaly& anomaly, const Owner& owner) const noexcept {
  const StreamPosition& position = anomaly.position;
  if (selection_.by_time &&
      (!position.time_known || position.tsc < selection_.tsc_begin || position.tsc >= selection_.tsc_end))
    return false;
  return ips_.empty() || ips_.has(anomaly.to_ip, owner.space) ||
         (anomaly.from_known && ips_.has(anomaly.from_ip, owner.space));
}

FrameTable::FrameTable(const tables::columns::Selection& selection, tables::columns::ColumnMask mask,
                       std::uint32_t stream, bool hides)
    : filter_(selection),
      stream_(stream),
      row_bytes_(tables::columns::row_bytes(tables::columns::TableId::calls, mask)),
      rows_(std::make_unique<Batch>(tables::columns::TableId::calls, mask)),
      anomalies_(
          std::make_unique<Batch>(tables::columns::TableId::stack_anomalies, tables::columns::kAllColumns)) {
  if (hides) hidden_.emplace();
}

std::uint64_t FrameTable::bytes() const noexcept {
  return rows_->bytes() + anomalies_->bytes() + owner_of_.capacity() * sizeof(std::uint32_t) +
         notes_.bytes() + (hidden_ ? hidden_->bytes() : 0);
}

// Frames with lower ids than the last one that has ended have slots.
std::uint64_t FrameTable::later_bytes(const FrameCounts& counts) const noexcept {
  const std::uint64_t slots = slot_of(counts.ids);
  return (slots - std::min<std::uint64_t>(slots, capacity_)) * row_bytes_;
}

// Hidden frames are looked up by number.
void FrameTable::on_window(std::span<const std::uint64_t> open, std::uint64_t frames) {
  ids_ = frames;
  if (hidden_) return;
  open_.assign(open.begin(), open.end());
  first_inside_ = frames;
}

void FrameTable::on_hidden(const Frame& frame) {
  ids_ = std::max(ids_, frame.id + 1);
  if (hidden_) hidden_->add(frame, true);
}

void FrameTable::on_frame(const Frame& frame, const Owner& owner) {
  ids_ = std::max(ids_, frame.id + 1);
  notes_.add(frame);
  if (hidden_) hidden_->add(frame, false);
  if (!filter_.selects(frame, owner) || out_of_memory_) return;
  const std::size_t slot = slot_of(frame.id);
  if (slot >= capacity_) {
    const std::size_t missing = slot + 1 - capacity_;
    if (!rows_->reserve(missing)) {
      out_of_memory_ = true;
      return;
    }
    rows_->add_rows(missing);
    capacity_ = slot + 1;
  }
  if (owners_.empty() || owners_[last_owner_] != owner) {
    const auto known = std::find(owners_.begin(), owners_.end(), owner);
    last_owner_ = static_cast<std::size_t>(known - owners_.begin());
    if (known == owners_.end()) owners_.push_back(owner);
  }
  if (slot >= owner_of_.size()) owner_of_.resize(std::max<std::size_t>(slot + 1, owner_of_.size() * 2));
  owner_of_[slot] = static_cast<std::uint32_t>(last_owner_ + 1);
  put_row(*rows_, slot, frame, 0);
}

void FrameTable::on_anomaly(const Anomaly& anomaly, const Owner& owner) {
  if (!filter_.selects(anomaly, owner)) return;
  anomalies_->begin_run(run_of(owner, stream_));
  if (!add_row(*anomalies_, anomaly)) out_of_memory_ = true;
}

namespace {

// Adds a number to the cells of a column, of rows with this flag.
template <Column C>
void add_to(Batch& batch, std::uint64_t by, unsigned flag) noexcept {
  auto* const cells = batch.cells<C>();
  const auto* const flags = batch.cells<Column::calls_flags>();
  if (cells == nullptr || flags == nullptr || by == 0) return;
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    if (flag == 0 || (flags[row] & flag) != 0) cells[row] += by;
  }
}

// Replaces numbers of functions by those of another table. Functions without rows get none.
void renumber(Batch& batch, const FunctionTable& from, FunctionTable& to) {
  auto* const cells = batch.cells<Column::calls_function>();
  if (cells == nullptr) return;
  std::vector<std::uint32_t> numbers(from.size());
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    if (cells[row] < kFirstFunction) continue;
    std::uint32_t& number = numbers[cells[row]];
    if (number == 0) number = to.number(from.at(cells[row]));
    cells[row] = number;
  }
}

}  // namespace

std::unique_ptr<Batch> FrameTable::take(std::uint64_t first_id, const FunctionTable& functions,
                                        FrameIndex& notes) {
  if (out_of_memory_) return nullptr;
  owner_of_.resize(std::min(owner_of_.size(), capacity_));
  if (hidden_) hidden_->apply(*rows_);
  rows_->clear();  // the cells stay
  std::vector<tables::columns::RowRange> kept;
  // Rows of one owner after the other: each range becomes rows of that owner's run.
  for (std::size_t row = 0; row < owner_of_.size();) {
    const std::uint32_t owner = owner_of_[row];
    std::size_t end = row + 1;
    while (end < owner_of_.size() && owner_of_[end] == owner) ++end;
    if (owner != 0) kept.push_back({row, end});
    row = end;
  }
  std::size_t there = 0;
  for (const tables::columns::RowRange& range : kept) {
    rows_->begin_run(run_of(owners_[owner_of_[range.begin] - 1], stream_));
    if (range.begin == there) {
      rows_->add_rows(range.end - range.begin);
    } else {
      rows_->add_rows_of(std::span(&range, 1), range.end);
    }
    there += range.end - range.begin;
  }
  add_to<Column::calls_id>(*rows_, first_id, 0);
  add_to<Column::calls_parent>(*rows_, first_id, FRAME_PARENT);
  add_to<Column::calls_continues>(*rows_, first_id, FRAME_CONTINUES);
  renumber(*rows_, functions, notes.functions());
  notes.append(std::move(notes_), ids_);
  return std::move(rows_);
}

std::unique_ptr<Batch> FrameTable::take_anomalies(std::uint64_t first_id) {
  auto* const frames = anomalies_->cells<Column::stack_anomalies_frame>();
  const auto* const flags = anomalies_->cells<Column::stack_anomalies_flags>();
  for (std::size_t row = 0; row < anomalies_->rows(); ++row) {
    if ((flags[row] & tables::columns::ANOMALY_FRAME_KNOWN) != 0) frames[row] += first_id;
  }
  return std::move(anomalies_);
}

FrameList::FrameList(const tables::columns::Selection& selection, tables::columns::ColumnMask mask)
    : filter_(selection),
      row_bytes_(tables::columns::row_bytes(tables::columns::TableId::calls, mask)),
      rows_(std::make_unique<Batch>(tables::columns::TableId::calls, mask)) {}

void FrameList::begin_stream(std::uint32_t stream) noexcept {
  stream_ = stream;
  first_id_ += next_id_;
  next_id_ = 0;
}

void FrameList::on_frame(const Frame& frame, const Owner& owner) {
  next_id_ = std::max(next_id_, frame.id + 1);
  if (out_of_memory_ || !filter_.selects(frame, owner)) return;
  if (!rows_->reserve(1)) {
    out_of_memory_ = true;
    return;
  }
  rows_->begin_run(run_of(owner, stream_));
  put_row(*rows_, rows_->rows(), frame, first_id_);
  rows_->add_rows(1);
}

std::unique_ptr<Batch> FrameList::take(std::size_t most) {
  std::unique_ptr<Batch> rest = rows_->rows() > most ? rows_->split(most) : rows_->successor();
  if (rest == nullptr) return nullptr;
  std::swap(rest, rows_);
  rest->shrink();
  return rest;
}

}  // namespace ptkit::tables::calls
