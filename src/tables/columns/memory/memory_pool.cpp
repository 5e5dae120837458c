#include "tables/columns/memory/memory_pool.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/memory_left.h"
#include "base/system/at_fork.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::size_t kMostShared = std::size_t{64} << 20U;
constexpr std::uint64_t kShare = 8;  // of the memory that a process may have, this part may be idle

[[nodiscard]] constexpr std::size_t whole_pages(std::size_t bytes, std::size_t size) noexcept {
  const std::size_t unit = size < base::kLargeRange ? base::kSmallUnit : base::kHugePage;
  return std::min((bytes + unit - 1) / unit * unit, size);
}

}  // namespace

const std::shared_ptr<MemoryPool>& MemoryPool::of_process() {
  // Arrays may outlive static objects, so the pool is never destroyed.
  static const auto* const pool = [] {
    auto* const made =
        new std::shared_ptr<MemoryPool>(std::make_shared<MemoryPool>(base::memory_limit() / kShare));
    base::at_fork(&lock_for_fork, &unlock_after_fork);
    return made;
  }();
  return *pool;
}

void MemoryPool::lock_for_fork() { of_process()->mutex_.lock(); }
void MemoryPool::unlock_after_fork() { of_process()->mutex_.unlock(); }

// Idle memory is no reason to be out of memory.
std::uint8_t* MemoryPool::map(std::size_t size) noexcept {
  std::uint8_t* memory = base::map_range(size);
  if (memory == nullptr && trim_locked(0) != 0) memory = base::map_range(size);
  return memory;
}

// Moves idle pages to the part of a large range that has none.
void MemoryPool::gather(PoolRange& range) noexcept {
  if (range.size < base::kLargeRange || !base::can_move_pages()) return;
  while (range.resident < range.size && !large_.empty()) {
    const auto [from, size, since] = large_.take_from_largest(range.size - range.resident);
    std::size_t moved = 0;
    const bool all = base::move_range(from, size, range.memory + range.resident, moved);
    range.resident += moved;
    if (all) continue;
    base::unmap_range(from + moved, size - moved);
    return;
  }
}

PoolRange MemoryPool::take_range(std::size_t bytes) noexcept {
  const std::size_t size = base::range_size(bytes);
  if (size == 0) return {};
  const std::scoped_lock lock(mutex_);
  remove_old();
  if (std::uint8_t* const idle = ranges_of(size).take(size)) return {idle, size, size};
  PoolRange range{map(size), size, 0};
  if (range.memory == nullptr) return {};
  gather(range);
  return range;
}

bool MemoryPool::grow(PoolRange& range, std::size_t bytes, std::size_t used) noexcept {
  if (range.memory == nullptr || range.size < base::kLargeRange) {
    PoolRange larger = take_range(bytes);
    if (larger.memory == nullptr) return false;
    if (used != 0) std::memcpy(larger.memory, range.memory, used);
    larger.resident = std::max(larger.resident, whole_pages(used, larger.size));
    release(range, used);
    range = larger;
    return true;
  }
  const std::size_t size = base::range_size(bytes);
  if (size == 0) return false;
  const std::size_t kept = std::max(range.resident, whole_pages(used, range.size));
  const std::scoped_lock lock(mutex_);
  PoolRange larger{map(size), size, 0};
  if (larger.memory == nullptr) return false;
  if (!base::move_range(range.memory, kept, larger.memory, larger.resident)) {
    // The part that did not move is copied.
    const std::size_t moved = larger.resident;
    std::memcpy(larger.memory + moved, range.memory + moved, std::max(used, moved) - moved);
    base::unmap_range(range.memory + moved, kept - moved);
    larger.resident = kept;
  }
  base::unmap_range(range.memory + kept, range.size - kept);
  gather(larger);
  range = larger;
  return true;
}

void MemoryPool::top_up(PoolRange& range, std::size_t used) noexcept {
  range.resident = std::max(range.resident, whole_pages(used, range.size));
  const std::scoped_lock lock(mutex_);
  gather(range);
}

void MemoryPool::shrink(PoolRange& range, std::size_t used) noexcept {
  const std::size_t kept = std::max(whole_pages(used, range.size),
                                    range.size < base::kLargeRange ? base::kSmallUnit : base::kHugePage);
  if (range.memory == nullptr || kept >= range.size) return;
  const PoolRange rest{range.memory + kept, range.size - kept,
                       range.resident > kept ? range.resident - kept : 0};
  IdleRanges& ranges = ranges_of(range.size);
  {
    const std::scoped_lock lock(mutex_);
    add(rest.memory, rest.resident, ranges);
  }
  base::unmap_range(rest.memory + rest.resident, rest.size - rest.resident);
  range.size = kept;
  range.resident = std::min(range.resident, kept);
}

void MemoryPool::release(PoolRange range, std::size_t used) noexcept {
  if (range.memory == nullptr) return;
  // A small range stays whole: the next one of its size takes it, also if this one was not filled.
  const std::size_t kept =
      range.size < base::kLargeRange ? range.size : std::max(range.resident, whole_pages(used, range.size));
  base::unmap_range(range.memory + kept, range.size - kept);
  const std::scoped_lock lock(mutex_);
  add(range.memory, kept, ranges_of(range.size));
  remove_old();
}

void MemoryPool::add(std::uint8_t* memory, std::size_t size, IdleRanges& ranges) noexcept {
  if (size == 0) return;
  if (!ranges.add(memory, size, now_())) base::unmap_range(memory, size);
  static_cast<void>(trim_locked(most_idle_));
}

std::shared_ptr<void> MemoryPool::take(std::size_t bytes) {
  const PoolRange range = base::range_size(bytes) < base::kLargeRange ? take_range(bytes) : take_block(bytes);
  if (range.memory == nullptr) return nullptr;
  try {
    return {range.memory, [pool = shared_from_this(), range](void*) { pool->release_block(range); }};
  } catch (const std::bad_alloc&) {  // the deleter has been called
    return nullptr;
  }
}

PoolRange MemoryPool::take_block(std::size_t bytes) noexcept {
  const std::size_t size = base::range_size(bytes);
  if (size == 0) return {};
  const std::scoped_lock lock(mutex_);
  remove_old();
  if (std::uint8_t* const idle = blocks_.take(size)) return {idle, size, size};
  return {map(size), size, 0};
}

void MemoryPool::release_block(const PoolRange& range) noexcept {
  if (range.size < base::kLargeRange) return release(range, range.size);
  // All of a very large block is seldom written.
  const std::size_t kept = range.size <= kMostShared ? range.size : range.resident;
  base::unmap_range(range.memory + kept, range.size - kept);
  const std::scoped_lock lock(mutex_);
  add(range.memory, kept, blocks_);
  remove_old();
}

void MemoryPool::remove_old() noexcept {
  if (idle_locked() == 0) return;
  const Clock::time_point limit = now_() - kIdleTime;
  for (IdleRanges* ranges : {&small_, &large_, &blocks_}) {
    for (auto oldest = ranges->oldest(); oldest && oldest->since < limit; oldest = ranges->oldest())
      base::unmap_range(oldest->memory, ranges->take_from_oldest(oldest->size).size);
  }
}

// The longest idle ranges go first; of a large one, only as much as has to.
std::uint64_t MemoryPool::trim_locked(std::uint64_t most) noexcept {
  const std::uint64_t before = idle_locked();
  while (idle_locked() > most) {
    IdleRanges* from = nullptr;
    IdleRanges::Range oldest;
    for (IdleRanges* ranges : {&small_, &large_, &blocks_}) {
      const auto found = ranges->oldest();
      if (!found || (from != nullptr && found->since >= oldest.since)) continue;
      from = ranges;
      oldest = *found;
    }
    std::size_t size = oldest.size;
    if (from != &small_) size = whole_pages(static_cast<std::size_t>(idle_locked() - most), size);
    const auto range = from->take_from_oldest(size);
    base::unmap_range(range.memory, range.size);
  }
  return before - idle_locked();
}

std::uint64_t MemoryPool::trim(std::uint64_t most) noexcept {
  const std::scoped_lock lock(mutex_);
  return trim_locked(most);
}

void MemoryPool::set_most_idle(std::uint64_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  most_idle_ = bytes;
  static_cast<void>(trim_locked(bytes));
}

std::uint64_t MemoryPool::most_idle() const noexcept {
  const std::scoped_lock lock(mutex_);
  return most_idle_;
}

std::uint64_t MemoryPool::idle_bytes() const noexcept {
  const std::scoped_lock lock(mutex_);
  return idle_locked();
}

}  // namespace ptkit::tables::columns
