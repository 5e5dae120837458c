// Rows as columns. Their memory grows without copying, and Python later owns it.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "columns/schema.h"

namespace ptkit::columns {

struct FreeMemory {
  bool external = false;  // another object owns the memory
  void operator()(void* memory) const noexcept {
    if (!external) std::free(memory);
  }
};
using OwnedMemory = std::unique_ptr<void, FreeMemory>;

// The cells of one column. The buffer grows by half, and by at most kLargestStep: the C library's realloc()
// moves large blocks by page tables, and pages that are never written cost nothing. Attached memory is used
// until it is too small.
class ColumnBuffer {
 public:
  static constexpr std::size_t kLargestStep = std::size_t{256} << 20;

  [[nodiscard]] bool reserve(std::size_t bytes) noexcept;  // false: out of memory, nothing changed
  void shrink_to(std::size_t bytes) noexcept;              // frees the memory after them
  [[nodiscard]] OwnedMemory release() noexcept;            // the buffer is empty afterwards
  void attach(void* memory, std::size_t bytes) noexcept;   // the owner of `memory` must outlive the use

  template <typename T>
  [[nodiscard]] T* cells() noexcept {
    return static_cast<T*>(memory_.get());
  }
  [[nodiscard]] std::uint8_t* data() noexcept { return cells<std::uint8_t>(); }
  [[nodiscard]] bool is_attached() const noexcept { return memory_.get_deleter().external; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  OwnedMemory memory_;
  std::size_t capacity_ = 0;
};

// From `row` on, rows belong to this stream, CPU, thread and address space.
struct Run {
  std::uint64_t row = 0;
  std::uint32_t stream = 0;
  std::int32_t cpu = 0;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::uint32_t space = 0;
  std::uint8_t flags = 0;  // RunFlag

  [[nodiscard]] bool same_owner(const Run& other) const noexcept {
    return stream == other.stream && cpu == other.cpu && pid == other.pid && tid == other.tid &&
           space == other.space && flags == other.flags;
  }
};

// Rows of one table. Only the columns of `mask` exist.
class Batch {
 public:
  Batch(TableId table, ColumnMask mask) noexcept;

  // Makes room for `extra` more rows in every column. False: out of memory, and the rows are unchanged.
  [[nodiscard]] bool reserve(std::size_t extra) noexcept;

  // The cells of a column, or null if the column is not selected. Valid until reserve().
  template <Column C>
  [[nodiscard]] Cell<C>* cells() noexcept {
    auto* first = buffers_[index_of(C)].template cells<Cell<C>>();
    return first == nullptr ? nullptr : first + front_;
  }
  template <Column C>
  void put(std::size_t row, std::type_identity_t<Cell<C>> value) noexcept {
    if (auto* column = cells<C>()) column[row] = value;
  }

  [[nodiscard]] bool wants(Column column) const noexcept { return ((mask_ >> index_of(column)) & 1) != 0; }
  [[nodiscard]] TableId table() const noexcept { return table_; }
  [[nodiscard]] ColumnMask mask() const noexcept { return mask_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  void add_rows(std::size_t count) noexcept { rows_ += count; }

  // Starts a run at the next row. Replaces a run without rows, and drops a run that equals the previous one.
  void begin_run(Run run);
  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }

  // Moves the rows from `row` on into a new batch. Null: out of memory.
  [[nodiscard]] std::unique_ptr<Batch> split(std::size_t row);
  // Appends the rows of `other` column by column, and frees each column afterwards. False: out of memory.
  [[nodiscard]] bool append(Batch&& other);
  // Appends `count` rows of `other` from `first` on. False: out of memory.
  [[nodiscard]] bool append_rows(Batch& other, std::size_t first, std::size_t count);
  [[nodiscard]] std::size_t bytes() const noexcept;  // memory of the rows
  // Drops the first `count` rows, and keeps the memory.
  void drop_front(std::size_t count);
  // Attaches memory: the rows move to these columns, which have room for `capacity` rows each. Later rows go
  // there, too, until the columns are full; then all rows move to memory of the batch. False: there are too
  // many rows, and nothing is changed. The first `front` rows of the columns stay free. `owner` is kept as
  // long as the rows are in its memory.
  [[nodiscard]] bool attach(std::span<void* const> columns, std::size_t capacity,
                            std::shared_ptr<void> owner = nullptr, std::size_t front = 0) noexcept;
  [[nodiscard]] bool is_attached() const noexcept;
  [[nodiscard]] const std::shared_ptr<void>& owner() const noexcept { return owner_; }
  // True if there is room for `extra` more rows without a move.
  [[nodiscard]] bool has_room(std::size_t extra) const noexcept { return front_ + rows_ + extra <= room_; }
  // Puts the rows of `before` before the rows, which do not move. False: there is no room, and nothing is
  // changed.
  [[nodiscard]] bool prepend(Batch& before);
  // Drops all rows and runs, and keeps the memory.
  void clear() noexcept;
  // The cells of the column with this index, as bytes.
  [[nodiscard]] std::uint8_t* data(std::size_t index) noexcept { return at(index, 0); }
  // The memory of a column, which starts with the first row. After shrink() only.
  [[nodiscard]] ColumnBuffer& buffer(std::size_t index) noexcept { return buffers_[index]; }
  void shrink() noexcept;

 private:
  [[nodiscard]] std::uint8_t* at(std::size_t column, std::size_t row) noexcept {
    std::uint8_t* first = buffers_[column].data();
    return first == nullptr ? nullptr : first + (front_ + row) * cell_size(columns_of(table_)[column].type);
  }
  void close_up() noexcept;

  TableId table_;
  ColumnMask mask_;
  std::size_t front_ = 0;  // dropped rows that are still in memory
  std::size_t rows_ = 0;
  std::size_t room_ = 0;
  std::array<ColumnBuffer, kMaxColumns> buffers_;
  std::shared_ptr<void> owner_;  // owner of attached memory
  std::vector<Run> runs_;
};

}  // namespace ptkit::columns
