// A checksum against accidental damage, not against attacks.
#pragma once

#include "base/bytes.h"

namespace ptkit::base {

[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t product = (a ^ b) * 0x9e37'79b9'7f4a'7c15;
  return product ^ (product >> 29);
}

// Two lanes, since a multiplication takes a few cycles.
[[nodiscard]] inline std::uint64_t check_sum(Bytes bytes) noexcept {
  std::uint64_t even = bytes.size();
  std::uint64_t odd = ~even;
  std::size_t at = 0;
  for (; at + 16 <= bytes.size(); at += 16) {
    even = mix(even, load_le<8>(bytes.data() + at));
    odd = mix(odd, load_le<8>(bytes.data() + at + 8));
  }
  for (; at < bytes.size(); ++at) even = mix(even, bytes[at]);
  return mix(even, odd);
}

}  // namespace ptkit::base
