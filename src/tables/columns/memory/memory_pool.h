// Memory for tables: ranges that tables have left are used again, because the first touch of a fresh page
// costs more than decoding its rows.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "base/system/memory_range.h"
#include "tables/columns/memory/idle_ranges.h"

namespace ptkit::tables::columns {

// A range of a pool. The first `resident` bytes may have pages that were written before.
struct PoolRange {
  std::uint8_t* memory = nullptr;
  std::size_t size = 0;
  std::size_t resident = 0;
};

// Ranges that nothing uses are idle: pages of large ones were all written before. They are kept by address,
// so that neighbours become one range again. A large range is made of several idle ones: their pages move,
// and are neither copied nor cleared.
//
// Idle memory goes back to the system when it exceeds the limit, and at the next call after kIdleTime. The
// pool has no thread of its own, and works in a child after fork().
class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kIdleTime = std::chrono::seconds(10);

  // The pool of this process, which is never destroyed. At first, its limit is an eighth of the memory that
  // this process may have.
  [[nodiscard]] static const std::shared_ptr<MemoryPool>& of_process();

  explicit MemoryPool(
      std::uint64_t most_idle = UINT64_MAX,
      std::function<Clock::time_point()> now = [] { return Clock::now(); })
      : most_idle_(most_idle), now_(std::move(now)) {}
  ~MemoryPool() { static_cast<void>(trim(0)); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // At least `bytes` bytes. Null `memory`: out of memory.
  [[nodiscard]] PoolRange take_range(std::size_t bytes) noexcept;
  // Makes a range larger. It may move, and keeps its first `used` bytes. False: out of memory, and nothing is
  // changed.
  [[nodiscard]] bool grow(PoolRange& range, std::size_t bytes, std::size_t used) noexcept;
  // Gives idle memory to the bytes of a large range from `used` on that have no pages yet.
  void top_up(PoolRange& range, std::size_t used) noexcept;
  // Cuts off what is not needed for `used` bytes.
  void shrink(PoolRange& range, std::size_t used) noexcept;
  // `used`: bytes at the start that may have been written.
  void release(PoolRange range, std::size_t used) noexcept;

  // Takes memory that several owners share, and the last one releases. Such blocks are written here
  // and there: only other blocks get their memory.
  [[nodiscard]] std::shared_ptr<void> take(std::size_t bytes);

  // Gives idle memory back to the system until at most `most` bytes are left. Returns the number of bytes.
  std::uint64_t trim(std::uint64_t most) noexcept;
  void set_most_idle(std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t most_idle() const noexcept;
  [[nodiscard]] std::uint64_t idle_bytes() const noexcept;

 private:
  [[nodiscard]] IdleRanges& ranges_of(std::size_t size) noexcept {
    return size < base::kLargeRange ? small_ : large_;
  }
  [[nodiscard]] PoolRange take_block(std::size_t bytes) noexcept;
  void release_block(const PoolRange& range) noexcept;
  [[nodiscard]] std::uint8_t* map(std::size_t size) noexcept;
  void gather(PoolRange& range) noexcept;
  void add(std::uint8_t* memory, std::size_t size, IdleRanges& ranges) noexcept;
  void remove_old() noexcept;
  [[nodiscard]] std::uint64_t trim_locked(std::uint64_t most) noexcept;
  [[nodiscard]] std::uint64_t idle_locked() const noexcept {
    return small_.bytes() + large_.bytes() + blocks_.bytes();
  }
  static void lock_for_fork();
  static void unlock_after_fork();

  mutable std::mutex mutex_;  // guards the members below
  std::uint64_t most_idle_;
  std::function<Clock::time_point()> now_;
  // Small and large ranges are kept apart: they differ in alignment and in the size of their pages.
  // So are blocks: a range must not take over pages that were never written.
  IdleRanges small_;
  IdleRanges large_;
  IdleRanges blocks_;
};

}  // namespace ptkit::tables::columns
