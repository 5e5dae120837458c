#include "tables/columns/read/row_budget.h"

#include <algorithm>

namespace ptkit::tables::columns {
namespace {

// Updates an unsigned sum by the difference of a reader, which is negative after rows were taken.
void move(std::uint64_t& sum, std::uint64_t& before, std::uint64_t now) noexcept {
  sum += now - before;
  before = now;
}

// Columns grow by half: their address space may exceed that of their rows by half.
[[nodiscard]] std::uint64_t with_growth(std::uint64_t bytes) noexcept { return bytes + bytes / 2; }

}  // namespace

void RowBudget::add_streams(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  stream_bytes_ += bytes;
}

RowBudget::Answer RowBudget::report(Share& share, std::uint64_t rows, std::uint64_t side_bytes,
                                    std::uint64_t position) {
  const std::scoped_lock lock(mutex_);
  move(sum_.rows, share.rows, rows);
  move(sum_.side_bytes, share.side_bytes, side_bytes);
  if (position != share.position) {
    move(sum_.position, share.position, position);
    move(sum_.rows_at_position, share.rows_at_position, rows);
  }
  if (input_.row_bytes == 0) return sum_.rows > input_.most_rows ? Answer::STOP : Answer::GO_ON;
  const std::uint64_t taken = sum_.rows * input_.row_bytes + sum_.side_bytes;
  return taken < next_check_ ? Answer::GO_ON : check_memory(taken);
}

RowBudget::Answer RowBudget::report_bytes(Share& share, std::uint64_t bytes, std::uint64_t later_bytes) {
  const std::scoped_lock lock(mutex_);
  move(sum_.side_bytes, share.side_bytes, bytes);
  move(sum_.later_bytes, share.later_bytes, later_bytes);
  const std::uint64_t all = sum_.side_bytes + sum_.later_bytes;
  if (all < next_check_ || check_memory(all) != Answer::STOP) return Answer::GO_ON;
  refused_bytes_ = all;
  return Answer::STOP;
}

RowBudget::Answer RowBudget::check_memory(std::uint64_t taken) {
  const std::uint64_t step = std::clamp(taken / 4, kFirstCheck, kMostStep);
  const base::MemoryLeft left = input_.left();
  const std::uint64_t pages = left.pages.usable();
  if (pages < step + sum_.later_bytes) return Answer::STOP;
  if (left.address_space.usable() < with_growth(sum_.later_bytes)) return Answer::STOP;
  next_check_ = taken + step;
  if (!input_.estimate) return Answer::GO_ON;
  const std::uint64_t rows = expected();
  const std::uint64_t more = (rows - sum_.rows) * input_.row_bytes + rows * input_.after_bytes;
  const bool fits = more <= pages && with_growth(more) <= left.address_space.usable();
  return fits ? Answer::GO_ON : Answer::COUNT;
}

std::uint64_t RowBudget::expected() const noexcept {
  if (sum_.position == 0) return sum_.rows;
  const double whole = static_cast<double>(sum_.rows_at_position) * static_cast<double>(stream_bytes_) /
                       static_cast<double>(sum_.position);
  return std::max(sum_.rows, static_cast<std::uint64_t>(whole));
}

std::uint64_t RowBudget::rows() const {
  const std::scoped_lock lock(mutex_);
  return sum_.rows;
}

std::uint64_t RowBudget::refused_bytes() const {
  const std::scoped_lock lock(mutex_);
  return refused_bytes_;
}

std::uint64_t RowBudget::expected_rows() const {
  const std::scoped_lock lock(mutex_);
  return expected();
}

}  // namespace ptkit::tables::columns
