// Locates holes in an overwritten AUX buffer (perf's snapshot mode) by the kernel's PERF_RECORD_AUX.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/bytes.h"

namespace ptkit::formats {

// An AUX record of an overwritten ring holds the ring offset of the next write (aux_head modulo the ring
// size). It does not say how often the ring wrapped.
class RingHoles {
 public:
  explicit RingHoles(std::uint64_t ring_bytes) : ring_bytes_(ring_bytes) {}

  // The ring was written up to `head`. `hole`: trace is missing since the AUX record before.
  void add_aux_record(std::uint64_t head, bool hole);

  [[nodiscard]] std::uint64_t head() const noexcept { return head_; }  // the last `head` that was passed

  // Returns the holes since the last call, as offsets in `fresh`, which holds the new bytes up to `head`.
  // Trace goes on at each offset. The offset is 0 if the hole's position was overwritten or is unknown.
  // `lost`: the ring may have wrapped since the last call; then an offset counts only if a PSB stands there.
  [[nodiscard]] std::vector<std::uint64_t> take_offsets(base::Bytes fresh, std::uint64_t head, bool lost);

 private:
  void advance(std::uint64_t head) noexcept;

  std::uint64_t ring_bytes_;
  std::uint64_t head_ = 0;
  std::uint64_t written_ = 0;                 // least number of bytes written since the ring was opened
  std::deque<std::uint64_t> hole_positions_;  // values of written_ at which trace is missing
  bool overwritten_hole_ = false;             // true if a hole's position was overwritten
};

}  // namespace ptkit::formats
