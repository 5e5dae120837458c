// AVX-512 helpers for arrays of 16-byte cells.
#pragma once

#include "base/cpu/target.h"

#if PT_SIMD_X86
#include <immintrin.h>

// gcc 12 takes undefined vectors in its own intrinsics for uninitialized variables.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace ptkit::base::cpu {

// Expands each of the lower four bits to two: a mask of cells to a mask of their 8-byte halves.
PT_INLINE_AVX512 __mmask8 halves(unsigned cells) noexcept {
  return static_cast<__mmask8>(_pdep_u32(cells, 0x55) * 3);
}

}  // namespace ptkit::base::cpu
#endif
