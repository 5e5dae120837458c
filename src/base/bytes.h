// Byte spans and little-endian loads, for all folders.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ptkit::base {

using Bytes = std::span<const std::uint8_t>;

// Loads N little-endian bytes (1..8), zero-extended. The caller guarantees N readable bytes.
template <std::size_t N>
[[nodiscard]] inline std::uint64_t load_le(const std::uint8_t* from) noexcept {
  static_assert(N >= 1 && N <= 8);
  std::uint64_t value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, from, N);
  } else {
    for (std::size_t i = 0; i < N; ++i) value |= std::uint64_t{from[i]} << (8 * i);
  }
  return value;
}

[[nodiscard]] constexpr std::uint64_t sign_extend(std::uint64_t value, unsigned bits) noexcept {
  const unsigned shift = 64 - bits;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << shift) >> shift);
}

}  // namespace ptkit::base
