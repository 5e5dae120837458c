// Rows of one sink behind those of another.
#include "columns/row_sink.h"

namespace ptkit::columns {
namespace {

template <Column COLUMN>
void shift(Batch& batch, std::uint64_t by) noexcept {
  auto* const cells = batch.cells<COLUMN>();
  if (cells == nullptr) return;
  for (std::size_t row = 0; row < batch.rows(); ++row) cells[row] += by;
}

void shift(Batch* batch, std::uint64_t instructions, std::uint64_t orders) noexcept {
  if (batch == nullptr) return;
  switch (batch->table()) {
    case TableId::branches:
      return shift<Column::branches_instruction>(*batch, instructions);
    case TableId::blocks:
      return shift<Column::blocks_instruction>(*batch, instructions);
    case TableId::instructions:
      return shift<Column::instructions_instruction>(*batch, instructions);
    case TableId::events:
      shift<Column::events_instruction>(*batch, instructions);
      return shift<Column::events_order>(*batch, orders);
    case TableId::errors:
      shift<Column::errors_instruction>(*batch, instructions);
      return shift<Column::errors_order>(*batch, orders);
    case TableId::gaps:
      shift<Column::gaps_instruction>(*batch, instructions);
      return shift<Column::gaps_order>(*batch, orders);
    default:
      return;
  }
}

}  // namespace

void RowSink::count_on_from(const RowSink& before) noexcept {
  for (auto* batch : {&main_, &errors_, &gaps_}) shift(batch->get(), before.instruction_, before.order_);
  instruction_ += before.instruction_;
  order_ += before.order_;
}

bool RowSink::tell_times(RowSink& behind, std::size_t most) {
  if (track_ == nullptr || !behind.deferring_) return false;
  last_place_ = {UINT64_MAX, UINT64_MAX};
  bool room = true;
  const bool more =
      behind.deferred_.answer(*track_, {*behind.main_, behind.errors_.get(), behind.gaps_.get()}, most, room);
  if (!room) out_of_memory_ = true;
  return more;
}

bool RowSink::take_rows(RowSink& behind) {
  Batch& rows = *behind.main_;
  if (take_memory(behind)) {
    std::swap(main_, behind.main_);
    behind.main_->clear();
    return true;
  }
  const std::size_t count = std::min(rows.rows(), room());
  if (!main_->has_room(count)) settle();
  if (!main_->append_rows(rows, 0, count)) out_of_memory_ = true;
  if (!out_of_memory_) rows.drop_front(count);
  return !out_of_memory_;
}

// Can the part lie where the rows behind are? Then only those are copied that came before; or those that are
// missing, if they are fewer.
bool RowSink::take_memory(RowSink& behind) {
  Batch& rows = *behind.main_;
  const std::size_t there = main_->rows();
  if (!rows.is_lent()) return there == 0 && rows.rows() != 0 && !main_->is_lent();
  if (there >= part_rows_ || there + rows.rows() < part_rows_) return false;
  const std::size_t missing = part_rows_ - there;
  return !(missing < there && main_->has_room(missing)) && rows.prepend(*main_);
}

void RowSink::use_memory(const PartMemory& part, std::size_t front) noexcept {
  if (part.memory != nullptr) static_cast<void>(main_->lend(part.columns, part.rows, part.memory, front));
}

void RowSink::begin_part(const PartMemory& part, std::size_t rows) {
  part_ = part;
  part_rows_ = rows;
  part_begins_ = true;
}

void RowSink::settle() noexcept {
  if (!part_begins_) return;
  part_begins_ = false;
  // Too many rows are there already: they are copied when the part ends.
  static_cast<void>(main_->lend(part_.columns, part_.rows, part_.memory));
}

bool RowSink::append_rest(RowSink& behind) {
  for (auto side : {&RowSink::errors_, &RowSink::gaps_}) {
    if (this->*side != nullptr && !(this->*side)->append(std::move(*(behind.*side)))) out_of_memory_ = true;
  }
  edges_.add_all(behind.edges_);
  instruction_ = behind.instruction_;
  order_ = behind.order_;
  run_ = behind.run_;
  context_selected_ = behind.context_selected_;
  begin_runs();
  return !out_of_memory_;
}

}  // namespace ptkit::columns
