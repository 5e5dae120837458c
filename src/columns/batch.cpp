#include "columns/batch.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ptkit::columns {
namespace {

// Large blocks get huge pages, because the first touch of small pages costs more than decoding. The advice
// covers all pages of the block, and that of its header: realloc() moves the pages of one mapping only.
void advise_huge(void* memory) noexcept {
  constexpr std::size_t kLarge = std::size_t{2} << 20U;
  constexpr std::uintptr_t kPage = 4096;
  const std::size_t size = ::malloc_usable_size(memory);
  if (size < kLarge) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t offset = address % kPage;
  static_cast<void>(::madvise(static_cast<std::uint8_t*>(memory) - offset,
                              (size + offset + kPage - 1) / kPage * kPage, MADV_HUGEPAGE));
}

}  // namespace

bool ColumnBuffer::reserve(std::size_t bytes) noexcept {
  if (bytes <= capacity_) return true;
  constexpr std::size_t kSmallest = 4096;
  const std::size_t step = std::clamp(capacity_ / 2, kSmallest, kLargestStep);
  std::size_t wanted = std::max(bytes, capacity_ + step);
  void* const own = is_attached() ? nullptr : memory_.get();
  void* memory = std::realloc(own, wanted);
  if (memory == nullptr) {  // near the limit of memory: reserve no more than is needed
    wanted = bytes;
    memory = std::realloc(own, wanted);
  }
  if (memory == nullptr) return false;
  if (is_attached()) std::memcpy(memory, memory_.get(), capacity_);
  (void)memory_.release();  // realloc() has taken the ownership
  memory_ = OwnedMemory(memory);
  capacity_ = wanted;
  advise_huge(memory);
  return true;
}

void ColumnBuffer::attach(void* memory, std::size_t bytes) noexcept {
  memory_ = OwnedMemory(memory, FreeMemory{true});
  capacity_ = bytes;
}

void ColumnBuffer::shrink_to(std::size_t bytes) noexcept {
  bytes = std::max<std::size_t>(bytes, 1);
  if (memory_ == nullptr || bytes >= capacity_ || is_attached()) return;
  if (void* memory = std::realloc(memory_.get(), bytes)) {
    (void)memory_.release();
    memory_.reset(memory);
    capacity_ = bytes;
  }
}

OwnedMemory ColumnBuffer::release() noexcept {
  capacity_ = 0;
  return std::move(memory_);
}

Batch::Batch(TableId table, ColumnMask mask) noexcept
    : table_(table), mask_(mask & ((ColumnMask{1} << columns_of(table).size()) - 1)) {}

bool Batch::reserve(std::size_t extra) noexcept {
  if (has_room(extra)) return true;
  close_up();
  if (rows_ + extra <= room_) return true;
  const auto columns = columns_of(table_);
  std::size_t room = SIZE_MAX;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (((mask_ >> i) & 1) == 0) continue;
    const std::size_t size = cell_size(columns[i].type);
    if (!buffers_[i].reserve((rows_ + extra) * size)) return false;
    room = std::min(room, buffers_[i].capacity() / size);
  }
  room_ = room;
  if (!is_attached()) owner_.reset();
  return true;
}

void Batch::begin_run(Run run) {
  run.row = rows_;
  if (!runs_.empty() && runs_.back().row == rows_) runs_.pop_back();
  if (!runs_.empty() && runs_.back().same_owner(run)) return;
  runs_.push_back(run);
}

std::unique_ptr<Batch> Batch::split(std::size_t row) {
  auto tail = std::make_unique<Batch>(table_, mask_);
  const std::size_t count = rows_ - row;
  if (!tail->reserve(count)) return nullptr;
  const auto columns = columns_of(table_);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (((mask_ >> i) & 1) == 0 || count == 0) continue;
    const std::size_t size = cell_size(columns[i].type);
    std::memcpy(tail->at(i, 0), at(i, row), count * size);
  }
  tail->rows_ = count;
  rows_ = row;
  const auto after =
      std::partition_point(runs_.begin(), runs_.end(), [row](const Run& run) { return run.row < row; });
  if (after != runs_.begin()) {
    tail->runs_.push_back(*std::prev(after));
    tail->runs_.back().row = 0;
  }
  for (auto run = after; run != runs_.end(); ++run) {
    if (!tail->runs_.empty() && run->row == row) tail->runs_.clear();
    tail->runs_.push_back(*run);
    tail->runs_.back().row -= row;
  }
  runs_.erase(after, runs_.end());
  return tail;
}

bool Batch::append(Batch&& other) {
  const bool grows = !has_room(other.rows_);
  if (grows) close_up();
  const auto columns = columns_of(table_);
  std::size_t room = SIZE_MAX;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (((mask_ >> i) & 1) == 0) continue;
    const std::size_t size = cell_size(columns[i].type);
    if (grows && !buffers_[i].reserve((rows_ + other.rows_) * size)) return false;
    room = std::min(room, buffers_[i].capacity() / size);
    if (other.rows_ == 0) continue;
    std::memcpy(at(i, rows_), other.at(i, 0), other.rows_ * size);
    (void)other.buffers_[i].release();
  }
  if (grows) {
    room_ = room;
    if (!is_attached()) owner_.reset();
  }
  const std::size_t base = rows_;
  for (const Run& run : other.runs_) {
    rows_ = base + run.row;
    begin_run(run);
  }
  rows_ = base + other.rows_;
  other.rows_ = other.room_ = other.front_ = 0;
  other.runs_.clear();
  return true;
}

bool Batch::append_rows(Batch& other, std::size_t first, std::size_t count) {
  if (!reserve(count)) return false;
  const auto columns = columns_of(table_);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (((mask_ >> i) & 1) == 0 || count == 0) continue;
    const std::size_t size = cell_size(columns[i].type);
    std::memcpy(at(i, rows_), other.at(i, first), count * size);
  }
  const std::size_t base = rows_;
  const auto after = std::partition_point(other.runs_.begin(), other.runs_.end(),
                                          [first](const Run& run) { return run.row <= first; });
  for (auto run = after == other.runs_.begin() ? after : std::prev(after);
       run != other.runs_.end() && (run->row <= first || run->row < first + count); ++run) {
    rows_ = base + (run->row > first ? static_cast<std::size_t>(run->row) - first : 0);
    begin_run(*run);
  }
  rows_ = base + count;
  return true;
}

std::size_t Batch::bytes() const noexcept {
  std::size_t sum = runs_.size() * sizeof(Run);
  const auto columns = columns_of(table_);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (((mask_ >> i) & 1) != 0) sum += rows_ * cell_size(columns[i].type);
  }
  return sum;
}

void Batch::drop_front(std::size_t count) {
  front_ += count;
  rows_ -= count;
  if (rows_ == 0) front_ = 0;
  const auto after =
      std::partition_point(runs_.begin(), runs_.end(), [count](const Run& run) { return run.row <= count; });
  if (after != runs_.begin()) runs_.erase(runs_.begin(), std::prev(after));
  for (Run& run : runs_) run.row = run.row > count ? run.row - count : 0;
}

bool Batch::prepend(Batch& before) {
  const std::size_t count = before.rows_;
  if (count > front_) return false;
  const auto columns = columns_of(table_);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (((mask_ >> i) & 1) == 0 || count == 0) continue;
    const std::size_t bytes = count * cell_size(columns[i].type);
    std::memcpy(at(i, 0) - bytes, before.at(i, 0), bytes);
  }
  front_ -= count;
  std::vector<Run> own;
  std::swap(own, runs_);
  const std::size_t rows = rows_ + count;
  for (const Run& run : before.runs_) {
    rows_ = static_cast<std::size_t>(run.row);
    begin_run(run);
  }
  for (const Run& run : own) {
    rows_ = count + static_cast<std::size_t>(run.row);
    begin_run(run);
  }
  rows_ = rows;
  return true;
}

bool Batch::attach(std::span<void* const> columns, std::size_t capacity, std::shared_ptr<void> owner,
                   std::size_t front) noexcept {
  if (rows_ + front > capacity) return false;
  const auto infos = columns_of(table_);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((mask_ >> i) & 1) == 0) continue;
    const std::size_t size = cell_size(infos[i].type);
    auto* const first = static_cast<std::uint8_t*>(columns[i]) + front * size;
    if (rows_ != 0 && first != at(i, 0)) std::memmove(first, at(i, 0), rows_ * size);
    buffers_[i].attach(columns[i], capacity * size);
  }
  front_ = front;
  room_ = capacity;
  owner_ = std::move(owner);
  return true;
}

bool Batch::is_attached() const noexcept {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [](const ColumnBuffer& one) { return one.is_attached(); });
}

void Batch::clear() noexcept {
  front_ = rows_ = 0;
  runs_.clear();
}

// Moves the rows to the start of the memory.
void Batch::close_up() noexcept {
  if (front_ == 0) return;
  const auto columns = columns_of(table_);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (((mask_ >> i) & 1) == 0 || rows_ == 0) continue;
    std::memmove(buffers_[i].data(), at(i, 0), rows_ * cell_size(columns[i].type));
  }
  front_ = 0;
}

void Batch::shrink() noexcept {
  close_up();
  const auto columns = columns_of(table_);
  for (std::size_t i = 0; i < columns.size(); ++i) buffers_[i].shrink_to(rows_ * cell_size(columns[i].type));
  room_ = 0;
}

}  // namespace ptkit::columns
