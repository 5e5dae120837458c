// Where in a ring that is overwritten round and round something was not traced, as the kernel's notes about
// it tell.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/bytes.h"

namespace ptkit::formats {

// Notes of a ring say where the trace unit writes next, not how often it went round.
class RingHoles {
 public:
  explicit RingHoles(std::uint64_t ring_bytes) : ring_bytes_(ring_bytes) {}

  // A note: the ring was written up to `place`. `hole`: somewhere since the note before something is missing.
  void take(std::uint64_t place, bool hole);

  [[nodiscard]] std::uint64_t place() const noexcept { return place_; }  // that was told last

  // The holes since the last look, as places in `fresh`: what the ring has up to `place` that is new. Each is
  // where its part of the trace begins, or, where that was overwritten or cannot be told, before the oldest
  // byte. `lost`: the ring may have gone round since the last look; then a place is believed if a PSB stands
  // there.
  [[nodiscard]] std::vector<std::uint64_t> places(base::Bytes fresh, std::uint64_t place, bool lost);

 private:
  void advance(std::uint64_t place) noexcept;

  std::uint64_t ring_bytes_;
  std::uint64_t place_ = 0;
  std::uint64_t written_ = 0;     // bytes, at least
  std::deque<std::uint64_t> at_;  // of the beginnings of parts with holes, by what was written
  bool older_ = false;            // there were some that are overwritten
};

}  // namespace ptkit::formats
