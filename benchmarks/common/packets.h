// The sink of the packet contest: where each packet stands, how long it is, and what it carries.
#pragma once

#include "common/contest.h"

namespace ptkit::bench {

template <bool kDigest>
class PacketTally {
 public:
  // The first field of the packet, as stored: both decoders have read it by now. For the sum only; fields
  // that the two represent differently (the bits of a TNT) are left out of it.
  void add(std::uint64_t offset, std::uint64_t size, std::uint64_t payload) noexcept {
    ++outcome_.rows;
    outcome_.sum += size;
    carried_ ^= payload;
    if constexpr (kDigest) {
      digest_.add(offset);
      digest_.add(size);
    }
  }
  void add_error() noexcept { ++outcome_.errors; }
  [[nodiscard]] Outcome outcome() const noexcept {
    Outcome result = outcome_;
    // Uses what was carried without letting it decide: one packet more would need 2^64 bytes.
    if (carried_ == UINT64_MAX) ++result.sum;
    if constexpr (kDigest) result.digest = digest_.value();
    return result;
  }

 private:
  Outcome outcome_;
  Digest digest_;
  std::uint64_t carried_ = 0;
};

}  // namespace ptkit::bench
