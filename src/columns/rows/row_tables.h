// The tables that a sink fills: the main table, and errors and gaps beside it. Rows of the main table may be
// in memory of a part, and rows of another sink's tables can follow.
#pragma once

#include <memory>

#include "columns/batch.h"
#include "columns/part_memory.h"
#include "columns/request.h"
#include "columns/rows/row_counts.h"

namespace ptkit::columns {

class RowTables {
 public:
  explicit RowTables(const Request& request);

  [[nodiscard]] Batch& table() noexcept { return *main_; }  // the main table
  [[nodiscard]] const Batch& table() const noexcept { return *main_; }
  [[nodiscard]] std::unique_ptr<Batch>& main() noexcept { return main_; }
  [[nodiscard]] std::unique_ptr<Batch>& errors() noexcept { return errors_; }  // null: not kept beside
  [[nodiscard]] std::unique_ptr<Batch>& gaps() noexcept { return gaps_; }
  // The table, whether it is the main one or beside it. Null: its rows are not kept.
  [[nodiscard]] Batch* find(TableId table) noexcept;

  // False: out of memory.
  [[nodiscard]] bool room_for(Batch& batch, std::size_t rows) noexcept;
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_ || main_->out_of_memory(); }
  void run_out_of_memory() noexcept { out_of_memory_ = true; }

  // The following rows of all tables belong to this run.
  void begin_run(const Run& run);
  // The following rows of the main table have times.
  void expect_times();

  // Attaches memory for rows of the main table, after `front` rows that stay free.
  void use_memory(const PartMemory& part, std::size_t front) noexcept;
  // The next `rows` rows of the main table are a part: see RowSink::begin_part().
  void begin_part(const PartMemory& part, std::size_t rows);
  void attach_part() noexcept;

  // Adds the numbers of instructions and events of `before` to all rows.
  void shift(const RowCounts& before) noexcept;
  // Moves up to `most` rows of the main table of `next`, from the front, or all of them at once. False: out
  // of memory.
  [[nodiscard]] bool take_rows(RowTables& next, std::size_t most);
  // Moves the errors and gaps of `next`. False: out of memory.
  [[nodiscard]] bool append_sides(RowTables& next);

 private:
  [[nodiscard]] bool take_memory(Batch& rows);

  std::unique_ptr<Batch> main_;
  std::unique_ptr<Batch> errors_;  // null if they are the main table, or are not kept
  std::unique_ptr<Batch> gaps_;
  PartMemory part_;
  std::size_t part_rows_ = 0;
  bool part_begins_ = false;
  bool out_of_memory_ = false;
};

}  // namespace ptkit::columns
