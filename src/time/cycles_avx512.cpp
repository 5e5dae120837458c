#include "base/cpu/cells_avx512.h"
#include "time/cycles_wide.h"

namespace ptkit::time {

#if PT_SIMD_X86
namespace {

constexpr std::size_t kLanes = 8;

PT_INLINE_AVX512 __mmask8 lanes_of(std::size_t left) noexcept {
  return static_cast<__mmask8>(left >= kLanes ? 0xffU : (1U << left) - 1);
}

}  // namespace

PT_TARGET_AVX512 void scale_wide(Cycles& cycles, std::size_t begin, std::size_t end, double factor,
                                 double margin) noexcept {
  const __m512d times = _mm512_set1_pd(factor);
  const __m512d margins = _mm512_set1_pd(margin);
  for (std::size_t i = begin; i < end; i += kLanes) {
    const __mmask8 lanes = lanes_of(end - i);
    double* const weight = cycles.weight.data() + i;
    _mm512_mask_storeu_pd(weight, lanes, _mm512_mul_pd(_mm512_maskz_loadu_pd(lanes, weight), times));
    _mm512_mask_storeu_pd(cycles.margin.data() + i, lanes, margins);
  }
}

PT_TARGET_AVX512 void rank_wide(Cycles& cycles, std::size_t begin, std::size_t end, Rank before) noexcept {
  const __m128i other = _mm_set1_epi8(static_cast<char>(before));
  const __m128i counted = _mm_set1_epi8(static_cast<char>(Rank::CYC));
  for (std::size_t i = begin; i < end; i += kLanes) {
    const __mmask8 lanes = lanes_of(end - i);
    const __m512d weight = _mm512_maskz_loadu_pd(lanes, cycles.weight.data() + i);
    const __mmask8 some = _mm512_cmp_pd_mask(weight, _mm512_setzero_pd(), _CMP_GT_OQ);
    _mm_mask_storeu_epi8(cycles.rank.data() + i, lanes, _mm_mask_mov_epi8(other, some, counted));
  }
}

// The order of operands gives the results of std::max() and std::min() for equal values.
PT_TARGET_AVX512 void limit_low_wide(Cycles& cycles, std::size_t begin, std::size_t end, double base,
                                     double off) noexcept {
  const __m512d floor = _mm512_set1_pd(base);
  const __m512d less = _mm512_set1_pd(off);
  for (std::size_t i = begin; i < end; i += kLanes) {
    const __mmask8 lanes = lanes_of(end - i);
    double* const low = cycles.low.data() + i;
    const __m512d ticks = _mm512_maskz_loadu_pd(lanes, low);
    const __m512d limit = _mm512_sub_pd(_mm512_add_pd(floor, ticks), less);
    _mm512_mask_storeu_pd(low, lanes, _mm512_maskz_max_pd(lanes, limit, floor));
  }
}

PT_TARGET_AVX512 void limit_high_wide(Cycles& cycles, std::size_t begin, std::size_t end, double base,
                                      double off) noexcept {
  const __m512d ceiling = _mm512_set1_pd(base);
  const __m512d more = _mm512_set1_pd(off);
  for (std::size_t i = begin; i < end; i += kLanes) {
    const __mmask8 lanes = lanes_of(end - i);
    double* const lows = cycles.low.data() + i;
    double* const highs = cycles.high.data() + i;
    const __m512d low = _mm512_maskz_loadu_pd(lanes, lows);
    const __m512d ticks = _mm512_maskz_loadu_pd(lanes, highs);
    const __m512d above = _mm512_add_pd(_mm512_sub_pd(ceiling, ticks), more);
    const __m512d limit = _mm512_maskz_min_pd(lanes, above, ceiling);
    _mm512_mask_storeu_pd(highs, lanes, _mm512_maskz_max_pd(lanes, limit, low));
    _mm512_mask_storeu_pd(lows, lanes, _mm512_maskz_min_pd(lanes, limit, low));
  }
}
#else
void scale_wide(Cycles&, std::size_t, std::size_t, double, double) noexcept {}
void rank_wide(Cycles&, std::size_t, std::size_t, Rank) noexcept {}
void limit_low_wide(Cycles&, std::size_t, std::size_t, double, double) noexcept {}
void limit_high_wide(Cycles&, std::size_t, std::size_t, double, double) noexcept {}
#endif

}  // namespace ptkit::time
