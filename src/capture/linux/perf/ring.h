// perf's ring buffers in memory: perf_event_mmap_page with head and tail, the ring of records, the AUX area
// (include/uapi/linux/perf_event.h).
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// A single-producer, single-consumer ring. The kernel writes `head`, user space writes `tail`; both count
// bytes from the beginning and never wrap:
//
//   tail            head         tail + size
//     |  unread data  |    room    |
//
// `head` is loaded with acquire order before data is read; `tail` is stored with release order after that.
class PerfRing {
 public:
  PerfRing() = default;
  PerfRing(base::Bytes memory, std::uint64_t* head, std::uint64_t* tail)
      : memory_(memory), head_(head), tail_(tail) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return memory_.size(); }
  [[nodiscard]] std::uint64_t head() const noexcept { return __atomic_load_n(head_, __ATOMIC_ACQUIRE); }
  [[nodiscard]] std::uint64_t tail() const noexcept { return *tail_; }
  // Whether `head` is plausible: [tail, head) fits the ring.
  [[nodiscard]] bool holds(std::uint64_t head) const noexcept {
    return head >= tail() && head - tail() <= size();
  }
  // Bytes [from, to) where they lie in memory: one span, or two if the ring wraps around in between.
  struct Spans {
    base::Bytes first;
    base::Bytes second;
  };
  [[nodiscard]] Spans spans(std::uint64_t from, std::uint64_t to) const noexcept;
  [[nodiscard]] std::vector<std::uint8_t> copy(std::uint64_t from, std::uint64_t to) const;
  // Returns the room before `to` to the kernel.
  void release(std::uint64_t to) noexcept { __atomic_store_n(tail_, to, __ATOMIC_RELEASE); }

 private:
  base::Bytes memory_;
  std::uint64_t* head_ = nullptr;
  std::uint64_t* tail_ = nullptr;
};

// The conversion of perf's time to TSC; nothing if the kernel's clock source is not the TSC.
[[nodiscard]] std::optional<trace::Clock> clock_of(const perf_event_mmap_page& page) noexcept;

// The contents of a stopped ring in overwrite mode, oldest byte first. `position`: of the next byte. Bytes
// that were never written are zero, so a byte that is not zero after `position` sets `lapped`: the ring has
// wrapped.
[[nodiscard]] std::vector<std::uint8_t> unrolled(base::Bytes memory, std::uint64_t position, bool& lapped);

}  // namespace ptkit::capture
