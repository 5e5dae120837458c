// Writes numbers as digits into memory that has room for them.
#pragma once

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace ptkit::base {

inline constexpr std::size_t kMostDigits = 20;  // of a number of 64 bits

namespace detail {
constexpr std::array<char, 512> hex_pairs() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::array<char, 512> pairs{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    pairs[2 * byte] = kDigits[byte >> 4U];
    pairs[2 * byte + 1] = kDigits[byte & 0xfU];
  }
  return pairs;
}
inline constexpr std::array<char, 512> kHexPairs = hex_pairs();
}  // namespace detail

// 16 digits, with leading zeros. Returns the end.
inline char* put_hex16(char* at, std::uint64_t value) noexcept {
  for (int byte = 7; byte >= 0; --byte) {
    std::memcpy(at + 2 * byte, &detail::kHexPairs[2 * (value & 0xffU)], 2);
    value >>= 8U;
  }
  return at + 16;
}

// `digits` (at most 16) digits, and more if the number has more.
inline char* put_hex(char* at, std::uint64_t value, unsigned digits = 1) noexcept {
  const auto used = static_cast<unsigned>(std::bit_width(value) + 3) / 4;
  const unsigned count = used > digits ? used : digits;
  std::array<char, 16> all;
  put_hex16(all.data(), value);
  std::memcpy(at, all.data() + (16 - count), count);
  return at + count;
}

inline char* put_decimal(char* at, std::uint64_t value) noexcept {
  return std::to_chars(at, at + kMostDigits, value).ptr;
}

inline char* put_decimal(char* at, std::int64_t value) noexcept {
  return std::to_chars(at, at + kMostDigits, value).ptr;
}

}  // namespace ptkit::base
