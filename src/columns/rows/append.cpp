// Rows of one sink after those of another.
#include "columns/rows/row_sink.h"

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

void RowSink::continue_counts_from(const RowSink& before) noexcept {
  for (auto* batch : {&main_, &errors_, &gaps_}) shift(batch->get(), before.instruction_, before.order_);
  instruction_ += before.instruction_;
  order_ += before.order_;
}

bool RowSink::fill_times(RowSink& next, std::size_t most) {
  if (track_ == nullptr || !next.deferring_) return false;
  last_place_ = {UINT64_MAX, UINT64_MAX};
  bool room = true;
  const bool more =
      next.deferred_.fill(*track_, {*next.main_, next.errors_.get(), next.gaps_.get()}, most, room);
  if (!room) out_of_memory_ = true;
  return more;
}

bool RowSink::take_rows(RowSink& next) {
  Batch& rows = *next.main_;
  if (take_memory(next)) {
    std::swap(main_, next.main_);
    next.main_->clear();
    return true;
  }
  const std::size_t count = std::min(rows.rows(), room());
  if (!main_->has_room(count)) attach_part();
  if (!main_->append_rows(rows, 0, count)) out_of_memory_ = true;
  if (!out_of_memory_) rows.drop_front(count);
  return !out_of_memory_;
}

// True if the part can use the memory with the rows of `next`. Then only the earlier rows are copied, or the
// missing rows, if they are fewer.
bool RowSink::take_memory(RowSink& next) {
  Batch& rows = *next.main_;
  const std::size_t there = main_->rows();
  if (!rows.is_attached()) return there == 0 && rows.rows() != 0 && !main_->is_attached();
  if (there >= part_rows_ || there + rows.rows() < part_rows_) return false;
  const std::size_t missing = part_rows_ - there;
  return !(missing < there && main_->has_room(missing)) && rows.prepend(*main_);
}

void RowSink::use_memory(const PartMemory& part, std::size_t front) noexcept {
  if (part.memory != nullptr) static_cast<void>(main_->attach(part.columns, part.rows, part.memory, front));
}

void RowSink::begin_part(const PartMemory& part, std::size_t rows) {
  part_ = part;
  part_rows_ = rows;
  part_begins_ = true;
}

void RowSink::attach_part() noexcept {
  if (!part_begins_) return;
  part_begins_ = false;
  // Fails if there are too many rows already: they are copied when the part ends.
  static_cast<void>(main_->attach(part_.columns, part_.rows, part_.memory));
}

bool RowSink::append_rest(RowSink& next) {
  for (auto side : {&RowSink::errors_, &RowSink::gaps_}) {
    if (this->*side != nullptr && !(this->*side)->append(std::move(*(next.*side)))) out_of_memory_ = true;
  }
  for (std::size_t bin = 0; bin < edges_.size(); ++bin) edges_[bin].add_all(next.edges_[bin]);
  instruction_ = next.instruction_;
  order_ = next.order_;
  run_ = next.run_;
  context_selected_ = next.context_selected_;
  begin_runs();
  return !out_of_memory_;
}

}  // namespace ptkit::columns
