// AVX-512 for rows of cells: what several kernels need of it.
#pragma once

#include "simd/target.h"

#if PT_SIMD_X86
#include <immintrin.h>

// gcc 12 takes the undefined vectors of its own intrinsics for variables that nobody set.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace ptkit::simd {

// Two bits for each of the lower four: the halves of 16-byte cells.
PT_INLINE_AVX512 __mmask8 halves(unsigned cells) noexcept {
  return static_cast<__mmask8>(_pdep_u32(cells, 0x55) * 3);
}

}  // namespace ptkit::simd
#endif
