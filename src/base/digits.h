// Writes numbers as digits into memory that is large enough for them.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace ptkit::base {

inline constexpr std::size_t kMostDigits = 20;  // of a number of 64 bits

// 16 digits, with leading zeros. Returns the end.
inline char* put_hex16(char* at, std::uint64_t value) noexcept {
#if defined(__SSE2__)
  const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(__builtin_bswap64(value)));
  const __m128i low = _mm_set1_epi8(0xf);
  const __m128i digits =
      _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi16(bytes, 4), low), _mm_and_si128(bytes, low));
  const __m128i letters =
      _mm_and_si128(_mm_cmpgt_epi8(digits, _mm_set1_epi8(9)), _mm_set1_epi8('a' - '0' - 10));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                   _mm_add_epi8(_mm_add_epi8(digits, _mm_set1_epi8('0')), letters));
#else
  for (unsigned digit = 0; digit < 16; ++digit)
    at[digit] = "0123456789abcdef"[value >> (60 - 4 * digit) & 0xf];
#endif
  return at + 16;
}

// `digits` (at most 16) digits, and more if the number has more. 16 bytes are written.
inline char* put_hex(char* at, std::uint64_t value, unsigned digits = 1) noexcept {
  const auto used = static_cast<unsigned>(std::bit_width(value) + 3) / 4;
  const unsigned count = used > digits ? used : digits;
  put_hex16(at, count == 0 ? 0 : value << 4 * (16 - count));
  return at + count;
}

inline char* put_decimal(char* at, std::uint64_t value) noexcept {
  return std::to_chars(at, at + kMostDigits, value).ptr;
}

inline char* put_decimal(char* at, std::int64_t value) noexcept {
  return std::to_chars(at, at + kMostDigits, value).ptr;
}

}  // namespace ptkit::base
