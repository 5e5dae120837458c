// Where each element of a chain begins, of 64 bytes at once: every byte says how long an element would be
// that began there, and pointer doubling follows all of these at the same time.
#pragma once

#include "simd/target.h"

#if PT_SIMD_X86
#include <immintrin.h>

#include <array>
#include <cstdint>

namespace ptkit::simd {

// 0 to 63.
alignas(64) inline constexpr auto kPlaces = [] {
  std::array<std::uint8_t, 64> places{};
  for (std::uint8_t i = 0; i < 64; ++i) places[i] = i;
  return places;
}();
// All ones in the lanes whose number has bit i.
alignas(64) inline constexpr auto kLanes = [] {
  std::array<std::array<std::uint8_t, 64>, 6> lanes{};
  for (unsigned i = 0; i < 6; ++i) {
    for (unsigned lane = 0; lane < 64; ++lane) lanes[i][lane] = (lane >> i & 1) != 0 ? 0xff : 0;
  }
  return lanes;
}();

// Compilers like to make constants anew in loops, which costs more than a register; they cannot look behind
// this.
PT_INLINE_AVX512 __m512i in_register(__m512i constant) noexcept {
  __asm__("" : "+v"(constant));
  return constant;
}

struct ChainConstants {
  __m512i place, behind, low_bits, behind_bit;
};

PT_INLINE_AVX512 ChainConstants chain_constants() noexcept {
  const __m512i place = in_register(_mm512_load_si512(kPlaces.data()));
  const __m512i bit = in_register(_mm512_set1_epi8(64));
  return {place, in_register(_mm512_or_si512(place, bit)), in_register(_mm512_set1_epi8(63)), bit};
}

// Lane j of `starts` is the place of the j-th element that begins in the block (`count` of them).
struct Chain {
  __m512i starts;
  __mmask64 inside;  // the low `count` bits
};

// `lengths`: 1 to 64 for each byte. `entry`: the first element's place, in every lane (0..63 in the low six
// bits); afterwards the same for the next 64 bytes.
//
// A place is 0..63 inside the block; 64 and more is behind it. One vpermi2b with the block's pointers in the
// low and the identity in the high half then takes a step, and what has left the block stays where it is.
// Of one block to the next only a single vpermb waits for the other.
PT_INLINE_AVX512 Chain resolve_chain(__m512i lengths, const ChainConstants& with, __m512i& entry) noexcept {
  __m512i next = _mm512_add_epi8(with.place, lengths);  // after 2^i elements
  __m512i starts = _mm512_and_si512(entry, with.low_bits);
  for (unsigned i = 0; i < 6; ++i) {
    const __m512i stepped = _mm512_permutex2var_epi8(next, starts, with.behind);
    starts = _mm512_ternarylogic_epi32(_mm512_load_si512(kLanes[i].data()), stepped, starts, 0xca);
    next = _mm512_permutex2var_epi8(next, next, with.behind);
  }
  entry = _mm512_permutexvar_epi8(entry, next);
  return {starts, _mm512_testn_epi8_mask(starts, with.behind_bit)};
}

}  // namespace ptkit::simd
#endif
