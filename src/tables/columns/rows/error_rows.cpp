#include "tables/columns/rows/error_rows.h"

#include <algorithm>
#include <utility>

#include "tables/columns/schema.h"

namespace ptkit::tables::columns {

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
