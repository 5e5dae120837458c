// Rows as columns: memory that grows without a copy of what is there, and that Python later owns.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "columns/schema.h"

namespace ptkit::columns {

struct FreeMemory {
  bool lent = false;  // somebody else's
  void operator()(void* memory) const noexcept {
    if (!lent) std::free(memory);
  }
};
using OwnedMemory = std::unique_ptr<void, FreeMemory>;

// One column's cells. Grows by half of what is there and by at most kLargestStep: large blocks of the C
// library's realloc() move by page tables, and pages never written cost nothing. Lent memory is used until
// it does not suffice any more.
class ColumnBuffer {
 public:
  static constexpr std::size_t kLargestStep = std::size_t{256} << 20;

  [[nodiscard]] bool reserve(std::size_t bytes) noexcept;  // false: out of memory, nothing changed
  void shrink_to(std::size_t bytes) noexcept;              // gives back what lies behind
  [[nodiscard]] OwnedMemory release() noexcept;            // the buffer is empty afterwards
  void lend(void* memory, std::size_t bytes) noexcept;     // of somebody who outlives its use

  template <typename T>
  [[nodiscard]] T* cells() noexcept {
    return static_cast<T*>(memory_.get());
  }
  [[nodiscard]] std::uint8_t* data() noexcept { return cells<std::uint8_t>(); }
  [[nodiscard]] bool is_lent() const noexcept { return memory_.get_deleter().lent; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  OwnedMemory memory_;
  std::size_t capacity_ = 0;
};

// From `row` on, rows belong to this stream, processor, thread and address space.
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

// Rows of one table; only the columns of `mask` exist.
class Batch {
 public:
  Batch(TableId table, ColumnMask mask) noexcept;

  // Room for `extra` more rows in every column. False: out of memory; what is there stays.
  [[nodiscard]] bool reserve(std::size_t extra) noexcept;

  // The cells of a column, or null if it was not asked for. Valid until reserve().
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

  // Starts a run at the next row (replaces one that has no rows yet, drops one that changes nothing).
  void begin_run(Run run);
  [[nodiscard]] const std::vector<Run>& runs() const noexcept { return runs_; }

  // Moves the rows from `row` on into a new batch (null: out of memory).
  [[nodiscard]] std::unique_ptr<Batch> split(std::size_t row);
  // Puts the rows of `other` behind these, column by column, and frees them as it goes. False: out of memory.
  [[nodiscard]] bool append(Batch&& other);
  // Puts `count` rows of `other` from `first` on behind these. False: out of memory.
  [[nodiscard]] bool append_rows(Batch& other, std::size_t first, std::size_t count);
  [[nodiscard]] std::size_t bytes() const noexcept;  // of memory that the rows take
  // Forgets the first `count` rows but keeps the memory.
  void drop_front(std::size_t count);
  // The rows move to these columns, with room for `capacity` rows each, and so do rows that come, as long as
  // there is room: then they go to memory of the batch again. False: it has too many rows, and nothing
  // changed. The first `front` rows of the columns are left free. `owner` is kept as long as rows are there.
  [[nodiscard]] bool lend(std::span<void* const> columns, std::size_t capacity,
                          std::shared_ptr<void> owner = nullptr, std::size_t front = 0) noexcept;
  [[nodiscard]] bool is_lent() const noexcept;
  [[nodiscard]] const std::shared_ptr<void>& owner() const noexcept { return owner_; }
  // Is there room for so many more rows without a move?
  [[nodiscard]] bool has_room(std::size_t extra) const noexcept { return front_ + rows_ + extra <= room_; }
  // Puts the rows of `before` before these, which stay where they are. False: there is no room; nothing
  // changed.
  [[nodiscard]] bool prepend(Batch& before);
  // Forgets all rows and runs but keeps the memory.
  void clear() noexcept;
  // The cells of the column with this index, as bytes.
  [[nodiscard]] std::uint8_t* data(std::size_t index) noexcept { return at(index, 0); }
  // A column's memory, with the first row at its beginning. After shrink() only.
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
  std::size_t front_ = 0;  // rows that were dropped, still in memory
  std::size_t rows_ = 0;
  std::size_t room_ = 0;
  std::array<ColumnBuffer, kMaxColumns> buffers_;
  std::shared_ptr<void> owner_;  // of what was lent
  std::vector<Run> runs_;
};

}  // namespace ptkit::columns
