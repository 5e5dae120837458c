#include "tables/columns/batch.h"

#include <cstring>
#include <iterator>

#include "tables/columns/memory/copy_past_cache.h"

namespace ptkit::tables::columns {
namespace {

// append() frees memory after so many rows.
constexpr std::size_t kAppendRows = std::size_t{1} << 20U;

// A column of so many bytes does not stay in the caches until it is read.
constexpr std::size_t kLargeColumn = std::size_t{8} << 20U;

// Expected sizes are estimates: a little more room is cheaper than to grow again.
[[nodiscard]] constexpr std::size_t with_margin(std::size_t rows) noexcept { return rows + rows / 16; }

}  // namespace

Batch::Batch(TableId table, ColumnMask mask) noexcept
    : table_(table),
      mask_(mask & ((ColumnMask{1} << columns_of(table).size()) - 1)),
      uniform_(mask_ & uniform_candidates(table)) {}

Batch::~Batch() {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].data() != nullptr) buffers_[i].note_used(std::max(written_, front_ + rows_) * size_of(i));
  }
  cell_runs_.note_used();
}

std::unique_ptr<Batch> Batch::successor() const {
  auto next = std::make_unique<Batch>(table_, mask_);
  next->run_mask_ = run_mask_;
  if (!next->set_varying(varying_)) return nullptr;
  if (!runs_.empty()) next->begin_run(runs_.back());
  return next;
}

bool Batch::reserve(std::size_t extra) noexcept {
  asked_ = std::max(asked_, front_ + rows_ + extra);
  if (has_room(extra)) return true;
  close_up();
  if (rows_ + extra <= room_) return true;
  std::size_t room = SIZE_MAX;
  bool done = true;
  for_each_stored([&](std::size_t i) {
    const std::size_t size = size_of(i);
    done = done && buffers_[i].reserve((rows_ + extra) * size, rows_ * size,
                                       expected_ > rows_ ? (with_margin(expected_) + extra) * size : 0);
    room = std::min(room, buffers_[i].capacity() / size);
  });
  if (!done) return false;
  written_ = 0;
  room_ = room;
  asked_ = rows_ + extra;
  for (ColumnMask left = uniform_ | run_mask_; left != 0;
       left &= left - 1)  // their memory was attached, if there is any
    static_cast<void>(buffers_[static_cast<std::size_t>(std::countr_zero(left))].release());
  attached_ = false;
  owner_.reset();
  return true;
}

bool Batch::reserve_windows(std::size_t rows) noexcept {
  if (!reserve(rows)) return false;
  for (ColumnMask left = uniform_; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    if (!buffers_[i].reserve(rows * size_of(i), 0)) return false;
  }
  room_ = rows;  // of all columns: none of them moves when it is stored
  return true;
}

std::unique_ptr<Batch> Batch::window(std::size_t first, std::size_t count) const {
  auto window = std::make_unique<Batch>(table_, mask_);
  std::array<void*, kMaxColumns> columns{};
  for (ColumnMask left = mask_; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    columns[i] = at(i, first);
  }
  static_cast<void>(window->attach(columns, count));
  return window;
}

bool Batch::add_window(const Batch& window) {
  const std::size_t row = rows_;
  if (!add_rows_like(window, 0, window.rows_)) return false;
  for_each_stored([&](std::size_t i) {
    if (window.is_uniform(i)) write_value(i, row, window.rows_, window.values_[i]);
  });
  return true;
}

// A value that is not that of a uniform column: the first one becomes the column's value.
bool Batch::differs(std::size_t index, std::size_t row, std::uint64_t value) noexcept {
  if (rows_ == 0 && row == 0) {
    values_[index] = value;
    return false;
  }
  if (!store(index)) out_of_memory_ = true;
  return !out_of_memory_;
}

// Makes memory for the cells of a column that has none, with room for as many rows as the other columns have.
bool Batch::make_cells(std::size_t index) noexcept {
  if (attached_) return true;
  const std::size_t size = size_of(index);
  const std::size_t rows = std::max(room_ == SIZE_MAX ? asked_ : room_, front_ + rows_);
  if (rows != 0 && !buffers_[index].reserve(rows * size, 0)) return false;
  if (rows != 0) room_ = std::min(room_, buffers_[index].capacity() / size);
  return true;
}

// Writes the cells of a uniform column.
bool Batch::store(std::size_t index) noexcept {
  if (!make_cells(index)) return false;
  uniform_ &= ~(ColumnMask{1} << index);
  write_value(index, 0, rows_, values_[index]);
  return true;
}

void Batch::keep_runs(Column column) noexcept { run_mask_ = (ColumnMask{1} << index_of(column)) & mask_; }

void Batch::add_offsets(std::span<const flow::SpanRun> spans) noexcept {
  if (keeps_runs() && !cell_runs_.add(spans)) out_of_memory_ = true;
}

// Writes the cells of the column of runs, if there is any.
bool Batch::store_runs() noexcept {
  if (!keeps_runs()) return true;
  const auto index = static_cast<std::size_t>(std::countr_zero(run_mask_));
  if (!make_cells(index)) return false;
  run_mask_ = 0;
  cell_runs_.write(0, rows_, reinterpret_cast<std::uint64_t*>(at(index, 0)));
  cell_runs_.clear();
  return true;
}

bool Batch::set_varying(ColumnMask columns) noexcept {
  varying_ |= columns & mask_;
  for (ColumnMask left = varying_ & uniform_; left != 0; left &= left - 1) {
    if (!store(static_cast<std::size_t>(std::countr_zero(left)))) return false;
  }
  return true;
}

void Batch::write_value(std::size_t index, std::size_t row, std::size_t count, std::uint64_t value) noexcept {
  if (count == 0) return;
  std::uint8_t* const first = at(index, row);
  switch (columns_of(table_)[index].type) {
    case CellType::U8:
      std::memset(first, static_cast<int>(value), count);
      return;
    case CellType::U16:
      std::fill_n(reinterpret_cast<std::uint16_t*>(first), count, static_cast<std::uint16_t>(value));
      return;
    case CellType::U32:
    case CellType::I32:
      std::fill_n(reinterpret_cast<std::uint32_t*>(first), count, static_cast<std::uint32_t>(value));
      return;
    case CellType::U64:
    case CellType::I64:
      std::fill_n(reinterpret_cast<std::uint64_t*>(first), count, value);
      return;
  }
}

void Batch::begin_run(OwnerRun run) {
  run.row = rows_;
  if (!runs_.empty() && runs_.back().row == rows_) runs_.pop_back();
  if (!runs_.empty() && runs_.back().same_owner(run)) return;
  runs_.push_back(run);
}

std::unique_ptr<Batch> Batch::split(std::size_t row) {
  if (!store_runs()) return nullptr;
  auto tail = std::make_unique<Batch>(table_, mask_);
  if (!tail->set_varying(varying_)) return nullptr;
  if (!tail->append_rows(*this, row, rows_ - row)) return nullptr;
  if (!runs_.empty() && runs_.back().row == rows_) tail->begin_run(runs_.back());  // it has no rows yet
  written_ = std::max(written_, front_ + rows_);
  rows_ = row;
  const auto after =
      std::partition_point(runs_.begin(), runs_.end(), [row](const OwnerRun& run) { return run.row < row; });
  runs_.erase(after, runs_.end());
  return tail;
}

// Stores the columns that would not be uniform with the rows of `other`.
bool Batch::store_unlike(const Batch& other) noexcept {
  if (!has_same_runs(other) && !store_runs()) return false;
  for (ColumnMask left = uniform_; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    if (other.is_uniform(i) && rows_ == 0) values_[i] = other.values_[i];
    if ((!other.is_uniform(i) || other.values_[i] != values_[i]) && !store(i)) return false;
  }
  return true;
}

void Batch::add_runs(const Batch& other, std::size_t first, std::size_t count) {
  const std::size_t base = rows_;
  const auto after = std::partition_point(other.runs_.begin(), other.runs_.end(),
                                          [first](const OwnerRun& run) { return run.row <= first; });
  for (auto run = after == other.runs_.begin() ? after : std::prev(after);
       run != other.runs_.end() && (run->row <= first || run->row < first + count); ++run) {
    rows_ = base + (run->row > first ? static_cast<std::size_t>(run->row) - first : 0);
    begin_run(*run);
  }
  rows_ = base + count;
}

bool Batch::add_rows_like(const Batch& other, std::size_t first, std::size_t count) {
  if (!reserve(count) || (count != 0 && !store_unlike(other))) return false;
  if (keeps_runs() && !cell_runs_.append(other.cell_runs_, first, count)) return false;
  add_runs(other, first, count);
  return true;
}

void Batch::copy_cells(std::size_t row, const Batch& other, std::size_t first, std::size_t count) noexcept {
  if (count == 0) return;
  for_each_stored([&](std::size_t i) {
    if (other.is_uniform(i)) {
      write_value(i, row, count, other.values_[i]);
    } else if (other.has_runs(i)) {
      other.cell_runs_.write(first, count, reinterpret_cast<std::uint64_t*>(at(i, row)));
    } else if ((row + count) * size_of(i) >= kLargeColumn) {
      copy_past_cache(at(i, row), other.at(i, first), count * size_of(i));
    } else {
      std::memcpy(at(i, row), other.at(i, first), count * size_of(i));
    }
  });
}

std::size_t Batch::move_rows(std::span<const RowRange> kept, std::size_t end) noexcept {
  written_ = std::max(written_, front_ + end);
  std::size_t to = rows_;
  for (const RowRange& range : kept) {
    const std::size_t count = range.end - range.begin;
    if (range.begin != to) {
      for_each_stored(
          [&](std::size_t i) { std::memmove(at(i, to), at(i, range.begin), count * size_of(i)); });
    }
    to += count;
  }
  return to;
}

bool Batch::append_rows(const Batch& other, std::size_t first, std::size_t count) {
  const std::size_t row = rows_;
  if (!add_rows_like(other, first, count)) return false;
  copy_cells(row, other, first, count);
  return true;
}

bool Batch::append(Batch&& other) {
  if (rows_ == 0 && runs_.empty() && !attached_ && !other.attached_ && varying_ == 0 && front_ == 0 &&
      other.front_ == 0 && has_same_runs(other)) {
    std::swap(*this, other);
    return true;
  }
  const std::size_t row = rows_;
  const std::size_t count = other.rows_;
  if (!add_rows_like(other, 0, count)) return false;
  for (std::size_t done = 0; done < count;) {
    const std::size_t next = std::min(count - done, kAppendRows);
    if (count > kAppendRows)
      for_each_stored([&](std::size_t i) { buffers_[i].top_up((row + done) * size_of(i)); });
    copy_cells(row + done, other, done, next);
    done += next;
    other.for_each_stored(
        [&](std::size_t i) { other.buffers_[i].drop_front((other.front_ + done) * size_of(i)); });
  }
  for (ColumnBuffer& buffer : other.buffers_) {
    buffer.note_used(buffer.capacity());
    static_cast<void>(buffer.release());
  }
  other.rows_ = other.room_ = other.asked_ = other.front_ = 0;
  other.runs_.clear();
  other.cell_runs_.clear();
  return true;
}

std::size_t Batch::bytes() const noexcept {
  std::size_t sum = runs_.size() * sizeof(OwnerRun) + cell_runs_.bytes();
  for_each_stored([&](std::size_t i) { sum += rows_ * size_of(i); });
  return sum;
}

void Batch::drop_front(std::size_t count) {
  written_ = std::max(written_, front_ + rows_);
  front_ += count;
  rows_ -= count;
  if (rows_ == 0) front_ = 0;
  if (keeps_runs()) cell_runs_.drop_front(count);
  const auto after = std::partition_point(runs_.begin(), runs_.end(),
                                          [count](const OwnerRun& run) { return run.row <= count; });
  if (after != runs_.begin()) runs_.erase(runs_.begin(), std::prev(after));
  for (OwnerRun& run : runs_) run.row = run.row > count ? run.row - count : 0;
}

bool Batch::prepend(Batch& before) {
  const std::size_t count = before.rows_;
  if (count > front_ || !store_runs() || !before.store_runs()) return false;
  if (count != 0 && !store_unlike(before)) return false;
  for_each_stored([&](std::size_t i) {
    if (count == 0) return;
    const std::size_t size = size_of(i);
    std::uint8_t* const first = at(i, 0) - count * size;
    if (!before.is_uniform(i)) {
      std::memcpy(first, before.at(i, 0), count * size);
      return;
    }
    front_ -= count;
    write_value(i, 0, count, before.values_[i]);
    front_ += count;
  });
  front_ -= count;
  std::vector<OwnerRun> own;
  std::swap(own, runs_);
  const std::size_t rows = rows_ + count;
  for (const OwnerRun& run : before.runs_) {
    rows_ = static_cast<std::size_t>(run.row);
    begin_run(run);
  }
  for (const OwnerRun& run : own) {
    rows_ = count + static_cast<std::size_t>(run.row);
    begin_run(run);
  }
  rows_ = rows;
  return true;
}

bool Batch::attach(std::span<void* const> columns, std::size_t capacity, std::shared_ptr<void> owner,
                   std::size_t front) noexcept {
  if (rows_ + front > capacity) return false;
  for (ColumnMask left = mask_; left != 0; left &= left - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(left));
    const std::size_t size = size_of(i);
    auto* const first = static_cast<std::uint8_t*>(columns[i]) + front * size;
    if (!is_uniform(i) && !has_runs(i) && rows_ != 0 && first != at(i, 0))
      std::memmove(first, at(i, 0), rows_ * size);
    buffers_[i].attach(columns[i], capacity * size);
  }
  front_ = front;
  room_ = capacity;
  attached_ = true;
  owner_ = std::move(owner);
  return true;
}

void Batch::clear() noexcept {
  written_ = std::max(written_, front_ + rows_);
  front_ = rows_ = 0;
  runs_.clear();
  cell_runs_.clear();
}

// Moves the rows to the start of the memory.
void Batch::close_up() noexcept {
  if (front_ == 0) return;
  written_ = std::max(written_, front_ + rows_);
  for_each_stored([&](std::size_t i) {
    if (rows_ != 0) std::memmove(buffers_[i].data(), at(i, 0), rows_ * size_of(i));
  });
  asked_ -= std::min(asked_, front_);
  front_ = 0;
}

void Batch::shrink() noexcept {
  close_up();
  for_each_stored([&](std::size_t i) { buffers_[i].shrink_to(rows_ * size_of(i)); });
  for (ColumnMask left = uniform_; left != 0; left &= left - 1) {  // memory that windows did not need
    ColumnBuffer& unused = buffers_[static_cast<std::size_t>(std::countr_zero(left))];
    unused.note_used(0);
    static_cast<void>(unused.release());
  }
  cell_runs_.shrink();
  room_ = 0;
}

}  // namespace ptkit::tables::columns
