// The cells of a column as runs of equal values. The column becomes an array where one is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "flow/rows/bulk.h"
#include "tables/columns/memory/column_buffer.h"

namespace ptkit::tables::columns {

// The rows from the previous run's `row_end` up to this `row_end`.
struct CellRun {
  std::uint64_t value = 0;
  std::uint64_t row_end = 0;
};

// Runs in memory of the pool. Rows are numbered from the first row that was not dropped.
class CellRuns {
 public:
  // The following functions return false if they are out of memory; then nothing is changed.
  //
  // Appends rows up to `row_end` with this value.
  [[nodiscard]] bool add(std::uint64_t value, std::size_t row_end) noexcept;
  // Appends the rows of these spans, with the offsets of their packets.
  [[nodiscard]] bool add(std::span<const flow::SpanRun> spans) noexcept;
  // Appends `count` rows of `other` from `first` on.
  [[nodiscard]] bool append(const CellRuns& other, std::size_t first, std::size_t count) noexcept;

  void drop_front(std::size_t rows) noexcept;
  void clear() noexcept;
  void shrink() noexcept;  // cuts off memory that is not needed

  [[nodiscard]] std::size_t rows() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return (end_ - first_) * sizeof(CellRun); }
  // Writes the cells of `count` rows from `first` on. Up to kSlack further cells are overwritten.
  static constexpr std::size_t kSlack = 8;
  void write_wide(std::size_t first, std::size_t count, std::uint64_t* cells) const noexcept;
  // As above, without slack.
  void write(std::size_t first, std::size_t count, std::uint64_t* cells) const noexcept;
  // Only the runs so far can have been written: see ColumnMemory.
  void note_used() noexcept { memory_.note_used(end_ * sizeof(CellRun)); }

 private:
  [[nodiscard]] bool reserve(std::size_t extra) noexcept;
  [[nodiscard]] CellRun* cells() const noexcept { return reinterpret_cast<CellRun*>(memory_.data()); }
  [[nodiscard]] std::span<const CellRun> runs() const noexcept { return {cells() + first_, end_ - first_}; }
  [[nodiscard]] std::span<const CellRun> from(std::uint64_t row) const noexcept;

  ColumnBuffer memory_;
  std::size_t first_ = 0;  // runs [first_, end_) are in use
  std::size_t end_ = 0;
  std::uint64_t dropped_ = 0;  // CellRun::row_end counts these rows, too
};

}  // namespace ptkit::tables::columns
