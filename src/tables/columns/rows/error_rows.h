// Errors or gaps beside the rows of the main table. Each remembers the row of the main table that comes next,
// so that it leaves the sink together with that row.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tables/columns/batch.h"

namespace ptkit::tables::columns {

class ErrorRows {
 public:
  ErrorRows() = default;  // rows are not kept
  explicit ErrorRows(TableId table);

  [[nodiscard]] Batch* table() const noexcept { return rows_.get(); }  // null: rows are not kept
  // The next row, which the caller adds, comes right before this row of the main table.
  void add_position(std::uint64_t row) { positions_.push_back(row); }
  // Whether there are rows before row `last` of the main table, or right before it.
  [[nodiscard]] bool any_up_to(std::uint64_t last) const noexcept { return count_up_to(last) != 0; }
  // Takes these rows. Null: rows are not kept, or out of memory.
  [[nodiscard]] std::unique_ptr<Batch> take(std::uint64_t last);
  // Moves these rows of `next`. Its row `first` of the main table is row `here` of this one. False: out of
  // memory.
  [[nodiscard]] bool take_from(ErrorRows& next, std::uint64_t last, std::uint64_t first, std::uint64_t here);
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  [[nodiscard]] std::size_t count_up_to(std::uint64_t last) const noexcept;

  std::unique_ptr<Batch> rows_;
  std::vector<std::uint64_t> positions_;  // ascending
};

}  // namespace ptkit::tables::columns
