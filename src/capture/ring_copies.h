// Copies of a ring that a trace unit writes round and round: what each has that the ones before had not.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace ptkit::capture {

class RingCopies {
 public:
  explicit RingCopies(std::uint64_t bytes) : bytes_(bytes) {}

  struct Fresh {
    base::Bytes bytes;  // of `newest`
    bool lost = false;  // what came before them was overwritten before anybody saw it
  };
  // `newest`: what the ring has, the oldest byte first; the last one lies right before `position`. `lapped`:
  // the ring was full once.
  [[nodiscard]] Fresh take(const std::vector<std::uint8_t>& newest, bool lapped, std::uint64_t position);

 private:
  [[nodiscard]] bool was_lapped(const std::vector<std::uint8_t>& newest, std::uint64_t position) const;

  std::uint64_t bytes_;
  std::vector<std::uint8_t> seen_;  // by place in the ring
  std::uint64_t seen_to_ = 0;
  bool seen_any_ = false;
};

}  // namespace ptkit::capture
