#include "tables/columns/memory/column_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace ptkit::tables::columns {
namespace {

// Smaller columns are on the heap: most tables of errors and gaps have few rows.
constexpr std::size_t kMostHeap = std::size_t{32} << 10U;
constexpr std::size_t kSmallest = 4096;
constexpr std::size_t kMostCopied = std::size_t{8} << 20U;

}  // namespace

bool ColumnMemory::grow(std::size_t bytes, std::size_t used) noexcept {
  if (bytes <= kMostHeap && (kind_ == Kind::NONE || kind_ == Kind::HEAP)) {
    void* const memory = std::realloc(range_.memory, bytes);
    if (memory == nullptr) return false;
    kind_ = Kind::HEAP;
    range_ = {static_cast<std::uint8_t*>(memory), bytes, 0};
    return true;
  }
  if (kind_ == Kind::POOL) return MemoryPool::of_process()->grow(range_, bytes, used);
  const PoolRange larger = MemoryPool::of_process()->take_range(bytes);
  if (larger.memory == nullptr) return false;
  if (used != 0) std::memcpy(larger.memory, range_.memory, used);
  reset();
  kind_ = Kind::POOL;
  range_ = larger;
  return true;
}

void ColumnMemory::shrink(std::size_t used) noexcept {
  used_ = used;
  if (kind_ == Kind::HEAP && used < range_.size) {
    if (void* const memory = std::realloc(range_.memory, std::max<std::size_t>(used, 1)))
      range_ = {static_cast<std::uint8_t*>(memory), used, 0};
  }
  if (kind_ != Kind::POOL) return;
  const bool large = range_.size >= base::kLargeRange;
  // A range has a least size: few cells move to smaller memory.
  if (used > kMostHeap && (!large || base::range_size(used) >= base::kLargeRange))
    return MemoryPool::of_process()->shrink(range_, used);
  ColumnMemory smaller;
  if (used == 0 || smaller.grow(used, 0)) {
    if (used != 0) std::memcpy(smaller.data(), range_.memory, used);
    *this = std::move(smaller);
    used_ = used;
  }
}

void ColumnMemory::top_up(std::size_t used) noexcept {
  if (kind_ == Kind::POOL) MemoryPool::of_process()->top_up(range_, used);
}

void ColumnMemory::drop_front(std::size_t bytes) noexcept {
  if (kind_ != Kind::POOL || range_.size < base::kLargeRange || bytes < dropped_) return;
  const std::size_t size =
      std::min((bytes - dropped_) / base::kHugePage * base::kHugePage, range_.size - base::kHugePage);
  if (size == 0) return;
  MemoryPool::of_process()->release({range_.memory, size, size}, size);
  dropped_ += size;
  range_.memory += size;
  range_.size -= size;
  range_.resident -= std::min(range_.resident, size);
}

void ColumnMemory::attach(void* memory, std::size_t bytes) noexcept {
  reset();
  kind_ = Kind::EXTERNAL;
  range_ = {static_cast<std::uint8_t*>(memory), bytes, 0};
}

void ColumnMemory::reset() noexcept {
  if (kind_ == Kind::HEAP) std::free(range_.memory);
  if (kind_ == Kind::POOL) {
    const std::size_t used = std::min(used_, capacity());
    MemoryPool::of_process()->release(range_, used - std::min(used, dropped_));
  }
  kind_ = Kind::NONE;
  range_ = {};
  dropped_ = 0;
  used_ = SIZE_MAX;
}

bool ColumnBuffer::reserve(std::size_t bytes, std::size_t used, std::size_t expected) noexcept {
  const std::size_t now = capacity();
  if (bytes <= now) return true;
  // Small columns are copied when they grow, so they grow more. Room that is never written costs nothing.
  const std::size_t step = now < kMostCopied ? now * 3 : now / 2;
  std::size_t wanted = std::max(bytes, now + std::clamp(step, kSmallest, kLargestStep));
  if (expected > bytes) wanted = expected;
  if (memory_.grow(wanted, used)) return true;
  return memory_.grow(bytes, used);  // near the limit of memory: no more than is needed
}

}  // namespace ptkit::tables::columns
