// Rows as columns. Their memory grows without copying, and Python later owns it. A column of equal values has
// no memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tables/columns/cell_runs.h"
#include "tables/columns/memory/column_buffer.h"
#include "tables/columns/schema.h"

namespace ptkit::tables::columns {

// From `row` on, rows belong to this stream, CPU, thread and address space.
struct OwnerRun {
  std::uint64_t row = 0;
  std::uint32_t stream = 0;
  std::int32_t cpu = 0;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint32_t space = 0;
  std::uint8_t flags = 0;  // RunFlag

  [[nodiscard]] bool same_owner(const OwnerRun& other) const noexcept {
    return stream == other.stream && cpu == other.cpu && pid == other.pid && tid == other.tid &&
           space == other.space && flags == other.flags;
  }
};

// Rows [begin, end).
struct RowRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const RowRange&) const = default;
};

// The column of a stream offset that has the same value in all rows of a packet.
[[nodiscard]] constexpr bool may_have_runs(Column column) noexcept {
  return column == Column::branches_offset || column == Column::blocks_offset ||
         column == Column::instructions_offset;
}

// Rows of one table. Only the columns of `mask` exist.
//
// States of a column that may be uniform (uniform_candidates()):
//
//   UNIFORM: all rows have one value, and there is no memory  ---- put() or fill() of another value,
//                                                                  set_varying() ----> STORED
//
// keep_runs() makes runs of equal cells of one column. It is STORED as soon as the rows are not only
// appended.
class Batch {
 public:
  Batch(TableId table, ColumnMask mask) noexcept;
  ~Batch();
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch&&) noexcept = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  // A batch without rows, for rows after those of this batch. Null: out of memory.
  [[nodiscard]] std::unique_ptr<Batch> successor() const;

  // Makes room for `extra` more rows in every column. False: out of memory, and the rows are unchanged.
  [[nodiscard]] bool reserve(std::size_t extra) noexcept;
  // The likely final number of rows, for reserve(); 0: not known.
  void expect(std::size_t rows) noexcept { expected_ = rows; }

  // The cells of a column. Null if the column is not selected, uniform, or kept as runs. Valid until the
  // batch grows.
  template <Column C>
  [[nodiscard]] Cell<C>* cells() noexcept {
    if (is_uniform(index_of(C)) || has_runs(index_of(C))) return nullptr;
    auto* first = buffers_[index_of(C)].template cells<Cell<C>>();
    return first == nullptr ? nullptr : first + front_;
  }
  // The cells of a column of counts, as the core counts: without a sign.
  template <Column C>
  [[nodiscard]] auto* counts() noexcept {
    return reinterpret_cast<std::make_unsigned_t<Cell<C>>*>(cells<C>());
  }
  template <Column C>
  void put(std::size_t row, std::type_identity_t<CellValue<C>> value) noexcept {
    if (is_uniform(index_of(C)) && !needs_cells(index_of(C), row, static_cast<std::uint64_t>(value))) return;
    if constexpr (may_have_runs(C)) {
      if (has_runs(index_of(C))) return add_cell_run(value, row + 1);
    }
    if (auto* column = cells<C>()) column[row] = static_cast<Cell<C>>(value);
  }
  // The rows [begin, end), which come after all others, have this value.
  template <Column C>
  void fill(std::size_t begin, std::size_t end, std::type_identity_t<CellValue<C>> value) noexcept {
    if (begin == end ||
        (is_uniform(index_of(C)) && !needs_cells(index_of(C), begin, static_cast<std::uint64_t>(value))))
      return;
    if constexpr (may_have_runs(C)) {
      if (has_runs(index_of(C))) return add_cell_run(value, end);
    }
    if (auto* column = cells<C>()) std::fill(column + begin, column + end, static_cast<Cell<C>>(value));
  }
  // Keeps a column with may_have_runs() as runs, if it is selected. Before the first row.
  void keep_runs(Column column) noexcept;
  [[nodiscard]] bool has_runs(std::size_t index) const noexcept { return ((run_mask_ >> index) & 1) != 0; }
  // The column of keep_runs() gets the offsets of these spans, which are those of the next rows. Nothing if
  // no column is kept as runs.
  void add_offsets(std::span<const flow::SpanRun> spans) noexcept;
  [[nodiscard]] bool keeps_runs() const noexcept { return run_mask_ != 0; }
  [[nodiscard]] CellRuns& cell_runs() noexcept { return cell_runs_; }
  // True if put(), fill() or add_offsets() had no memory.
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_; }

  // Columns of which later rows have different values: they are stored from now on. False: out of memory.
  [[nodiscard]] bool set_varying(ColumnMask columns) noexcept;
  // The attached memory is to have rows of which these columns are uniform. Before the first row.
  void adopt_uniform(ColumnMask columns, std::span<const std::uint64_t> values) noexcept {
    uniform_ = columns & mask_;
    std::copy_n(values.begin(), kMaxColumns, values_.begin());
  }
  [[nodiscard]] bool is_uniform(std::size_t index) const noexcept { return ((uniform_ >> index) & 1) != 0; }
  [[nodiscard]] ColumnMask uniform() const noexcept { return uniform_; }
  [[nodiscard]] std::uint64_t uniform_value(std::size_t index) const noexcept { return values_[index]; }

  [[nodiscard]] bool wants(Column column) const noexcept { return ((mask_ >> index_of(column)) & 1) != 0; }
  [[nodiscard]] TableId table() const noexcept { return table_; }
  [[nodiscard]] ColumnMask mask() const noexcept { return mask_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  void add_rows(std::size_t count) noexcept { rows_ += count; }
  // Cells were written after the last row, up to `end`. Those of `kept` become rows. Ranges ascend.
  void add_rows_of(std::span<const RowRange> kept, std::size_t end) noexcept { rows_ = move_rows(kept, end); }
  // Cells of `kept` stay cells after the last row, and do not become rows. Returns where they end.
  [[nodiscard]] std::size_t move_rows(std::span<const RowRange> kept, std::size_t end) noexcept;

  // Takes memory for `rows` rows at once, before the first row. Several threads can then write them through
  // windows. False: out of memory.
  [[nodiscard]] bool reserve_windows(std::size_t rows) noexcept;
  // A batch in the memory of the rows [first, first + count). This batch must outlive it.
  [[nodiscard]] std::unique_ptr<Batch> window(std::size_t first, std::size_t count) const;
  // Adds the rows that were written through a window, which begins after the last row. False: out of memory.
  [[nodiscard]] bool add_window(const Batch& window);

  // Starts a run at the next row. Replaces a run without rows, and drops a run that equals the previous one.
  void begin_run(OwnerRun run);
  [[nodiscard]] const std::vector<OwnerRun>& runs() const noexcept { return runs_; }

  // Moves the rows from `row` on into a new batch. Null: out of memory.
  [[nodiscard]] std::unique_ptr<Batch> split(std::size_t row);
  // Appends all rows of `other`, and frees its memory on the way, so that the rows are hardly ever held
  // twice. False: out of memory.
  [[nodiscard]] bool append(Batch&& other);
  // Appends `count` rows of `other` from `first` on. False: out of memory.
  [[nodiscard]] bool append_rows(const Batch& other, std::size_t first, std::size_t count);
  // The two halves of append_rows(). The first makes room, and adds the rows and their runs; the second
  // writes the cells. Several threads may write different rows at once, while the batch does not grow.
  [[nodiscard]] bool add_rows_like(const Batch& other, std::size_t first, std::size_t count);
  void copy_cells(std::size_t row, const Batch& other, std::size_t first, std::size_t count) noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;  // memory of the rows
  // Drops the first `count` rows, and keeps the memory.
  void drop_front(std::size_t count);
  // Attaches memory: the rows move to these columns, which have room for `capacity` rows each. Later rows go
  // there, too, until the columns are full; then all rows move to memory of the batch. False: there are too
  // many rows, and nothing is changed. The first `front` rows of the columns stay free. `owner` is kept as
  // long as the rows are in its memory.
  [[nodiscard]] bool attach(std::span<void* const> columns, std::size_t capacity,
                            std::shared_ptr<void> owner = nullptr, std::size_t front = 0) noexcept;
  [[nodiscard]] bool is_attached() const noexcept { return attached_; }
  [[nodiscard]] const std::shared_ptr<void>& owner() const noexcept { return owner_; }
  // True if there is room for `extra` more rows without a move.
  [[nodiscard]] bool has_room(std::size_t extra) const noexcept { return front_ + rows_ + extra <= room_; }
  // Puts the rows of `before` before the rows, which do not move. False: there is no room, and nothing is
  // changed.
  [[nodiscard]] bool prepend(Batch& before);
  // Drops all rows and runs, and keeps the memory.
  void clear() noexcept;
  // The cells of the column with this index, as bytes. Not for uniform columns and columns of runs.
  [[nodiscard]] std::uint8_t* data(std::size_t index) const noexcept { return at(index, 0); }
  // The memory of a column, which starts with the first row; empty for a uniform column and a column of runs.
  // After shrink() only.
  [[nodiscard]] ColumnBuffer& buffer(std::size_t index) noexcept { return buffers_[index]; }
  void shrink() noexcept;

 private:
  [[nodiscard]] std::size_t size_of(std::size_t column) const noexcept {
    return cell_size(columns_of(table_)[column].type);
  }
  [[nodiscard]] std::uint8_t* at(std::size_t column, std::size_t row) const noexcept {
    std::uint8_t* first = buffers_[column].data();
    return first == nullptr ? nullptr : first + (front_ + row) * size_of(column);
  }
  // Calls visit(index) for the columns that have cells.
  template <typename Visit>
  void for_each_stored(Visit visit) const {
    for (ColumnMask left = mask_ & ~uniform_ & ~run_mask_; left != 0; left &= left - 1)
      visit(static_cast<std::size_t>(std::countr_zero(left)));
  }
  // Whether cells have to be written, since the value is not that of a uniform column.
  [[nodiscard]] bool needs_cells(std::size_t index, std::size_t row, std::uint64_t value) noexcept {
    if (value == values_[index]) return false;
    return differs(index, row, value);
  }
  [[nodiscard]] bool differs(std::size_t index, std::size_t row, std::uint64_t value) noexcept;
  [[nodiscard]] bool store(std::size_t index) noexcept;
  [[nodiscard]] bool make_cells(std::size_t index) noexcept;
  [[nodiscard]] bool store_runs() noexcept;
  [[nodiscard]] bool has_same_runs(const Batch& other) const noexcept { return run_mask_ == other.run_mask_; }
  void add_cell_run(std::uint64_t value, std::size_t row_end) noexcept {
    if (!cell_runs_.add(value, row_end)) out_of_memory_ = true;
  }
  void write_value(std::size_t index, std::size_t row, std::size_t count, std::uint64_t value) noexcept;
  [[nodiscard]] bool store_unlike(const Batch& other) noexcept;
  void add_runs(const Batch& other, std::size_t first, std::size_t count);
  void close_up() noexcept;

  TableId table_;
  ColumnMask mask_;
  ColumnMask uniform_;                               // columns without cells
  ColumnMask varying_ = 0;                           // columns that set_varying() named
  std::array<std::uint64_t, kMaxColumns> values_{};  // of the uniform columns
  ColumnMask run_mask_ = 0;                          // the column of cell_runs_
  CellRuns cell_runs_;
  bool attached_ = false;
  bool out_of_memory_ = false;
  std::size_t front_ = 0;  // dropped rows that are still in memory
  std::size_t rows_ = 0;
  std::size_t written_ = 0;  // rows of this memory that were written, as far as they are no rows any more
  std::size_t room_ = 0;
  std::size_t asked_ = 0;  // rows that reserve() made room for, dropped ones included
  std::size_t expected_ = 0;
  std::array<ColumnBuffer, kMaxColumns> buffers_;
  std::shared_ptr<void> owner_;  // owner of attached memory
  std::vector<OwnerRun> runs_;
};

}  // namespace ptkit::tables::columns
