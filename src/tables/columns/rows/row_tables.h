// The tables that a sink fills: the main table, and errors and gaps beside it. Rows of the main table may be
// in memory of a part, and rows of another sink's tables can follow.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tables/columns/batch.h"
#include "tables/columns/part_memory.h"
#include "tables/columns/request.h"
#include "tables/columns/rows/row_counts.h"

namespace ptkit::tables::columns {

// Errors or gaps beside the rows of the main table. Each remembers the row of the main table that comes next,
// so that it leaves the sink together with that row.
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

class RowTables {
 public:
  explicit RowTables(const Request& request);

  [[nodiscard]] Batch& table() noexcept { return *main_; }  // the main table
  [[nodiscard]] const Batch& table() const noexcept { return *main_; }
  [[nodiscard]] std::unique_ptr<Batch>& main() noexcept { return main_; }
  [[nodiscard]] ErrorRows& errors() noexcept { return errors_; }
  [[nodiscard]] ErrorRows& gaps() noexcept { return gaps_; }
  // The table, whether it is the main one or beside it. Null: its rows are not kept.
  [[nodiscard]] Batch* find(TableId table) noexcept;

  // False: out of memory.
  [[nodiscard]] bool room_for(Batch& batch, std::size_t rows) noexcept;
  // For one row of errors or gaps, which may be the main table.
  [[nodiscard]] bool room_for_side_row(Batch& batch);
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_ || main_->out_of_memory(); }
  void run_out_of_memory() noexcept { out_of_memory_ = true; }

  // The following rows of all tables belong to this run.
  void begin_run(const OwnerRun& run);
  // The following rows of the main table have times.
  void expect_times();

  // Attaches memory for rows of the main table, after `front` rows that stay free.
  void use_memory(const PartMemory& part, std::size_t front) noexcept;
  // The next `rows` rows of the main table are a part: see RowSink::begin_part().
  void begin_part(const PartMemory& part, std::size_t rows);
  void attach_part() noexcept;

  // Adds the numbers of instructions and events of `before` to all rows.
  void shift(const RowCounts& before) noexcept;
  // Moves up to `most` rows of the main table of `next`, from the front, or all of them at once, and the
  // errors and gaps that come before the next row. False: out of memory.
  [[nodiscard]] bool take_rows(RowTables& next, std::size_t most);
  // The first `count` rows left the main table. Errors and gaps right before or among them can leave, too,
  // or `all` of them. Those right before the next row leave with that row, because they may come later.
  void rows_left(std::size_t count, bool all) noexcept;
  [[nodiscard]] std::unique_ptr<Batch> take_errors() { return errors_.take(sides_up_to_); }
  [[nodiscard]] std::unique_ptr<Batch> take_gaps() { return gaps_.take(sides_up_to_); }
  // True if take_errors() or take_gaps() would return rows.
  [[nodiscard]] bool has_error_rows() const noexcept {
    return errors_.any_up_to(sides_up_to_) || gaps_.any_up_to(sides_up_to_);
  }

 private:
  [[nodiscard]] bool take_memory(Batch& rows);
  [[nodiscard]] bool take_main(RowTables& next, std::size_t& count);

  std::unique_ptr<Batch> main_;
  ErrorRows errors_;  // not kept if they are the main table
  ErrorRows gaps_;
  std::uint64_t rows_left_ = 0;    // rows that were in the main table before its first row
  std::uint64_t sides_up_to_ = 0;  // row of the main table, before which errors and gaps can leave
  PartMemory part_;
  std::size_t part_rows_ = 0;
  bool part_begins_ = false;
  bool out_of_memory_ = false;
};

}  // namespace ptkit::tables::columns
