// perf's ring buffers as memory: a page that says who has read and written how far, records, and trace (AUX).
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// A ring that the kernel writes and we read; both count bytes since it began.
class PerfRing {
 public:
  PerfRing() = default;
  PerfRing(base::Bytes memory, std::uint64_t* head, std::uint64_t* tail)
      : memory_(memory), head_(head), tail_(tail) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return memory_.size(); }
  [[nodiscard]] std::uint64_t head() const noexcept { return __atomic_load_n(head_, __ATOMIC_ACQUIRE); }
  [[nodiscard]] std::uint64_t tail() const noexcept { return *tail_; }
  // Whether bytes [tail, head) can be there.
  [[nodiscard]] bool holds(std::uint64_t head) const noexcept {
    return head >= tail() && head - tail() <= size();
  }
  // Bytes [from, to) where they lie: one piece, or two where the ring's end is between.
  struct Pieces {
    base::Bytes first;
    base::Bytes second;
  };
  [[nodiscard]] Pieces pieces(std::uint64_t from, std::uint64_t to) const noexcept;
  [[nodiscard]] std::vector<std::uint8_t> copy(std::uint64_t from, std::uint64_t to) const;
  // Gives the room before `to` back.
  void release(std::uint64_t to) noexcept { __atomic_store_n(tail_, to, __ATOMIC_RELEASE); }

 private:
  base::Bytes memory_;
  std::uint64_t* head_ = nullptr;
  std::uint64_t* tail_ = nullptr;
};

// The clock of perf's times, out of the first page; nothing if they cannot be converted.
[[nodiscard]] std::optional<trace::Clock> clock_of(const perf_event_mmap_page& page) noexcept;

// A ring of trace that is overwritten round and round, stopped with its next byte at `position`: what it has,
// the oldest byte first. What was never written is zero, so `lapped` gets to know once it is written to the
// end.
[[nodiscard]] std::vector<std::uint8_t> unrolled(base::Bytes memory, std::uint64_t position, bool& lapped);

}  // namespace ptkit::capture
