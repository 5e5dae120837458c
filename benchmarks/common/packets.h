// The sink of packet decoders: offset, size and first field of each packet.
#pragma once

#include "common/contest.h"

namespace ptkit::bench {

template <bool kDigest>
class PacketTally {
 public:
  // `payload`: the first field of the packet, for the sum only. Fields that the two decoders represent
  // differently (TNT bits) are 0.
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
    // Uses `carried_` so that the compiler cannot remove it. The value UINT64_MAX is practically impossible.
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
