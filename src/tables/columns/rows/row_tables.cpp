#include "tables/columns/rows/row_tables.h"

#include <algorithm>
#include <utility>

#include "tables/columns/schema.h"

namespace ptkit::tables::columns {
namespace {

// The columns of which the values differ from row to row if rows have times.
[[nodiscard]] ColumnMask time_columns(TableId table) noexcept {
  ColumnMask mask = 0;
  const auto columns = columns_of(table);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name.starts_with("tsc") || columns[i].name == "flags") mask |= ColumnMask{1} << i;
  }
  return mask & uniform_candidates(table);
}

template <Column COLUMN>
void shift(Batch& batch, std::uint64_t by) noexcept {
  auto* const cells = batch.counts<COLUMN>();
  if (cells == nullptr) return;
  for (std::size_t row = 0; row < batch.rows(); ++row) cells[row] += by;
}

void shift(Batch* batch, const RowCounts& by) noexcept {
  if (batch == nullptr) return;
  switch (batch->table()) {
    case TableId::branches:
      shift<Column::branches_number>(*batch, by.branches);
      return shift<Column::branches_instruction>(*batch, by.instructions);
    case TableId::blocks:
      return shift<Column::blocks_instruction>(*batch, by.instructions);
    case TableId::instructions:
      return shift<Column::instructions_instruction>(*batch, by.instructions);
    case TableId::events:
      shift<Column::events_instruction>(*batch, by.instructions);
      return shift<Column::events_order>(*batch, by.order);
    case TableId::errors:
      shift<Column::errors_instruction>(*batch, by.instructions);
      return shift<Column::errors_order>(*batch, by.order);
    case TableId::gaps:
      shift<Column::gaps_instruction>(*batch, by.instructions);
      return shift<Column::gaps_order>(*batch, by.order);
    default:
      return;
  }
}

void keep_offset_runs(Batch& batch) noexcept {
  for (const Column column : {Column::branches_offset, Column::blocks_offset, Column::instructions_offset}) {
    if (table_of(column) == batch.table()) batch.keep_runs(column);
  }
}

}  // namespace

RowTables::RowTables(const Request& request)
    : main_(std::make_unique<Batch>(request.table, stored_columns(request))) {
  // Rows that are selected by time are moved.
  if (request.offset_runs && !request.selection.by_time) keep_offset_runs(*main_);
  if (!request.side_tables) return;
  if (request.table != TableId::errors) errors_ = ErrorRows(TableId::errors);
  if (request.table != TableId::gaps) gaps_ = ErrorRows(TableId::gaps);
}

Batch* RowTables::find(TableId table) noexcept {
  if (main_->table() == table) return main_.get();
  if (table == TableId::errors) return errors_.table();
  return table == TableId::gaps ? gaps_.table() : nullptr;
}

bool RowTables::room_for(Batch& batch, std::size_t rows) noexcept {
  if (!out_of_memory() && batch.reserve(rows)) return true;
  out_of_memory_ = true;
  return false;
}

bool RowTables::room_for_side_row(Batch& batch) {
  if (!room_for(batch, 1)) return false;
  for (ErrorRows* side : {&errors_, &gaps_}) {
    if (side->table() == &batch) side->add_position(rows_left_ + main_->rows());
  }
  return true;
}

void RowTables::begin_run(const OwnerRun& run) {
  for (Batch* batch : {main_.get(), errors_.table(), gaps_.table()}) {
    if (batch != nullptr && batch->table() != TableId::edges) batch->begin_run(run);
  }
}

void RowTables::expect_times() {
  if (!main_->set_varying(time_columns(main_->table()))) out_of_memory_ = true;
}

void RowTables::use_memory(const PartMemory& part, std::size_t front) noexcept {
  if (part.memory != nullptr) static_cast<void>(main_->attach(part.columns, part.rows, part.memory, front));
}

void RowTables::begin_part(const PartMemory& part, std::size_t rows) {
  part_ = part;
  part_rows_ = rows;
  part_begins_ = true;
}

void RowTables::attach_part() noexcept {
  if (!part_begins_) return;
  part_begins_ = false;
  // Fails if there are too many rows already: they are copied when the part ends.
  static_cast<void>(main_->attach(part_.columns, part_.rows, part_.memory));
}

void RowTables::shift(const RowCounts& before) noexcept {
  for (Batch* batch : {main_.get(), errors_.table(), gaps_.table()}) columns::shift(batch, before);
}

bool RowTables::take_rows(RowTables& next, std::size_t most) {
  const std::uint64_t first = next.rows_left_;
  const std::uint64_t here = rows_left_ + main_->rows();
  std::size_t count = most;
  if (!take_main(next, count)) return false;
  next.rows_left_ += count;
  const bool room = errors_.take_from(next.errors_, next.rows_left_, first, here) &&
                    gaps_.take_from(next.gaps_, next.rows_left_, first, here);
  if (!room) out_of_memory_ = true;
  return room;
}

void RowTables::rows_left(std::size_t count, bool all) noexcept {
  rows_left_ += count;
  if (count != 0) sides_up_to_ = rows_left_ - 1;
  if (all) sides_up_to_ = UINT64_MAX;
}

// Moves up to `count` rows of the main table, or all; `count` is then their number.
bool RowTables::take_main(RowTables& next, std::size_t& count) {
  Batch& rows = *next.main_;
  const std::size_t available = rows.rows();
  if (take_memory(rows)) {
    count = available;
    std::swap(main_, next.main_);
    next.main_->clear();
    return true;
  }
  count = std::min(available, count);
  if (!main_->has_room(count)) attach_part();
  if (!main_->append_rows(rows, 0, count)) out_of_memory_ = true;
  if (!out_of_memory_) rows.drop_front(count);
  return !out_of_memory_;
}

// True if the part can use the memory of `rows`. Then only the earlier rows are copied, or the missing rows,
// if they are fewer.
bool RowTables::take_memory(Batch& rows) {
  const std::size_t there = main_->rows();
  if (!rows.is_attached()) return there == 0 && rows.rows() != 0 && !main_->is_attached();
  if (there >= part_rows_ || there + rows.rows() < part_rows_) return false;
  const std::size_t missing = part_rows_ - there;
  return !(missing < there && main_->has_room(missing)) && rows.prepend(*main_);
}

ErrorRows::ErrorRows(TableId table) : rows_(std::make_unique<Batch>(table, usual_columns(table))) {}

std::size_t ErrorRows::count_up_to(std::uint64_t last) const noexcept {
  return static_cast<std::size_t>(std::ranges::upper_bound(positions_, last) - positions_.begin());
}

std::unique_ptr<Batch> ErrorRows::take(std::uint64_t last) {
  if (rows_ == nullptr) return nullptr;
  const std::size_t count = count_up_to(last);
  auto rest = count == rows_->rows() ? rows_->successor() : rows_->split(count);
  if (rest == nullptr) return nullptr;
  std::swap(rest, rows_);
  positions_.erase(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(count));
  rest->shrink();
  return rest;
}

bool ErrorRows::take_from(ErrorRows& next, std::uint64_t last, std::uint64_t first, std::uint64_t here) {
  const std::size_t count = next.count_up_to(last);
  if (count == 0) return true;
  if (!rows_->append_rows(*next.rows_, 0, count)) return false;
  next.rows_->drop_front(count);
  const auto end = next.positions_.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::transform(next.positions_.begin(), end, std::back_inserter(positions_),
                         [&](std::uint64_t position) { return position - first + here; });
  next.positions_.erase(next.positions_.begin(), end);
  return true;
}

std::size_t ErrorRows::bytes() const noexcept {
  return rows_ == nullptr ? 0 : rows_->bytes() + positions_.size() * sizeof(positions_[0]);
}

}  // namespace ptkit::tables::columns
