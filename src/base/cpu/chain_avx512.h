// Pointer doubling (list ranking): finds where each element of a chain begins, for 64 bytes at once. Each
// byte has the length of an element that begins there. Doubling follows all these links in parallel.
#pragma once

#include "base/cpu/target.h"

#if PT_SIMD_X86
#include <immintrin.h>

#include <array>
#include <cstdint>

namespace ptkit::base::cpu {

// 0 to 63.
alignas(64) inline constexpr auto kOffsets = [] {
  std::array<std::uint8_t, 64> offsets{};
  for (std::uint8_t i = 0; i < 64; ++i) offsets[i] = i;
  return offsets;
}();
// kLanes[i]: all ones in the lanes with bit i set in their number, else 0.
alignas(64) inline constexpr auto kLanes = [] {
  std::array<std::array<std::uint8_t, 64>, 6> lanes{};
  for (unsigned i = 0; i < 6; ++i) {
    for (unsigned lane = 0; lane < 64; ++lane) lanes[i][lane] = (lane >> i & 1) != 0 ? 0xff : 0;
  }
  return lanes;
}();

// An optimization barrier: keeps a constant in a register. Compilers rematerialize constants in loops, which
// costs more than a register.
PT_INLINE_AVX512 __m512i in_register(__m512i constant) noexcept {
  __asm__("" : "+v"(constant));
  return constant;
}

struct ChainConstants {
  __m512i offset, beyond, low_bits, beyond_bit;
};

PT_INLINE_AVX512 ChainConstants chain_constants() noexcept {
  const __m512i offset = in_register(_mm512_load_si512(kOffsets.data()));
  const __m512i bit = in_register(_mm512_set1_epi8(64));
  return {offset, in_register(_mm512_or_si512(offset, bit)), in_register(_mm512_set1_epi8(63)), bit};
}

// Lane j of `starts` is the offset of the j-th element that begins in the block (`count` elements).
struct Chain {
  __m512i starts;
  __mmask64 inside;  // the low `count` bits
};

// `lengths`: 1 to 64 for each byte. `entry`: the first element's offset in every lane (0..63 in the low six
// bits); set to the first element's offset in the next 64 bytes.
//
// Offsets 0..63 are inside the block, 64 and above are after it. One vpermi2b with the links in the low half
// and the identity in the high half takes a step; offsets after the block stay. From one block to the next,
// only a single vpermb is on the critical path.
PT_INLINE_AVX512 Chain resolve_chain(__m512i lengths, const ChainConstants& with, __m512i& entry) noexcept {
  __m512i next = _mm512_add_epi8(with.offset, lengths);  // after 2^i elements
  __m512i starts = _mm512_and_si512(entry, with.low_bits);
  for (unsigned i = 0; i < 6; ++i) {
    const __m512i stepped = _mm512_permutex2var_epi8(next, starts, with.beyond);
    starts = _mm512_ternarylogic_epi32(_mm512_load_si512(kLanes[i].data()), stepped, starts, 0xca);
    next = _mm512_permutex2var_epi8(next, next, with.beyond);
  }
  entry = _mm512_permutexvar_epi8(entry, next);
  return {starts, _mm512_testn_epi8_mask(starts, with.beyond_bit)};
}

}  // namespace ptkit::base::cpu
#endif
