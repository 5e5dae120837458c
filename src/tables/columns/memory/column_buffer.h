// The memory of one column. Its rows are written where they stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "tables/columns/memory/memory_pool.h"

namespace ptkit::tables::columns {

// Memory with one owner: of the heap, of the pool of the process, or of another object.
class ColumnMemory {
 public:
  ColumnMemory() = default;
  ~ColumnMemory() { reset(); }
  ColumnMemory(ColumnMemory&& other) noexcept
      : kind_(std::exchange(other.kind_, Kind::NONE)),
        range_(std::exchange(other.range_, {})),
        dropped_(std::exchange(other.dropped_, 0)),
        used_(other.used_) {}
  ColumnMemory& operator=(ColumnMemory&& other) noexcept {
    if (this == &other) return *this;
    reset();
    kind_ = std::exchange(other.kind_, Kind::NONE);
    range_ = std::exchange(other.range_, {});
    dropped_ = std::exchange(other.dropped_, 0);
    used_ = other.used_;
    return *this;
  }
  ColumnMemory(const ColumnMemory&) = delete;
  ColumnMemory& operator=(const ColumnMemory&) = delete;

  [[nodiscard]] std::uint8_t* data() const noexcept { return range_.memory - dropped_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return range_.size + dropped_; }
  [[nodiscard]] bool is_external() const noexcept { return kind_ == Kind::EXTERNAL; }

  // Room for `bytes` bytes, of which the first `used` stay as they are. False: out of memory, and nothing is
  // changed.
  [[nodiscard]] bool grow(std::size_t bytes, std::size_t used) noexcept;
  void shrink(std::size_t used) noexcept;  // frees the memory after them
  void top_up(std::size_t used) noexcept;  // see MemoryPool
  // Gives the first `bytes` bytes to the pool, in whole huge pages. The other bytes keep their addresses.
  void drop_front(std::size_t bytes) noexcept;
  void attach(void* memory, std::size_t bytes) noexcept;
  void reset() noexcept;
  // Only the first `bytes` bytes can have been written since grow().
  void note_used(std::size_t bytes) noexcept { used_ = bytes; }

 private:
  enum class Kind : std::uint8_t { NONE, HEAP, POOL, EXTERNAL };

  Kind kind_ = Kind::NONE;
  PoolRange range_;
  std::size_t dropped_ = 0;      // bytes before range_
  std::size_t used_ = SIZE_MAX;  // bytes that may have been written, as far as known
};

// The cells of one column. The memory grows to four times its size while it is small, then by half, and by at
// most kLargestStep, unless its final size can be foreseen. Large memory moves by page tables, and pages that
// are never written cost nothing. Attached memory is used until it is too small.
class ColumnBuffer {
 public:
  static constexpr std::size_t kLargestStep = std::size_t{256} << 20U;

  // `used`: bytes that are kept. `expected`: the likely final size; 0: not known. False: out of memory, and
  // nothing is changed.
  [[nodiscard]] bool reserve(std::size_t bytes, std::size_t used, std::size_t expected = 0) noexcept;
  void shrink_to(std::size_t bytes) noexcept { memory_.shrink(bytes); }
  void top_up(std::size_t used) noexcept { memory_.top_up(used); }
  void drop_front(std::size_t bytes) noexcept { memory_.drop_front(bytes); }
  void note_used(std::size_t bytes) noexcept { memory_.note_used(bytes); }
  [[nodiscard]] ColumnMemory release() noexcept { return std::move(memory_); }  // empty afterwards
  // The owner of `memory` must outlive the use.
  void attach(void* memory, std::size_t bytes) noexcept { memory_.attach(memory, bytes); }

  template <typename T>
  [[nodiscard]] T* cells() noexcept {
    return reinterpret_cast<T*>(memory_.data());
  }
  [[nodiscard]] std::uint8_t* data() const noexcept { return memory_.data(); }
  [[nodiscard]] bool is_attached() const noexcept { return memory_.is_external(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return memory_.capacity(); }

 private:
  ColumnMemory memory_;
};

}  // namespace ptkit::tables::columns
