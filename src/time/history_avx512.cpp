// Rounding 8 limits at once.
#include "simd/target.h"
#include "time/history.h"

#if PT_SIMD_X86
#include <immintrin.h>
#endif

namespace ptkit::time {

#if PT_SIMD_X86
PT_TARGET_AVX512 bool History::round_wide(const Cycles& cycles, std::size_t begin, std::size_t end,
                                          std::uint64_t origin) noexcept {
  const __m512d zero = _mm512_setzero_pd();
  const __m512d most = _mm512_set1_pd(kConvertible);
  const __m512i base = _mm512_set1_epi64(static_cast<long long>(origin));
  const __m512i all = _mm512_set1_epi64(-1);
  for (std::size_t i = begin; i < end; i += 8) {
    const auto left = static_cast<unsigned>(end - i);
    const auto lanes = static_cast<__mmask8>(left >= 8 ? 0xffU : (1U << left) - 1);
    const __m512d low = _mm512_maskz_max_pd(lanes, _mm512_maskz_loadu_pd(lanes, cycles.low.data() + i), zero);
    const __m512d high =
        _mm512_maskz_max_pd(lanes, _mm512_maskz_loadu_pd(lanes, cycles.high.data() + i), zero);
    if (_mm512_cmp_pd_mask(_mm512_maskz_max_pd(lanes, low, high), most, _CMP_NLT_UQ) != 0) return false;
    const __m512i floor = _mm512_add_epi64(base, _mm512_cvttpd_epu64(low));
    const __m512i ceil =
        _mm512_add_epi64(base, _mm512_cvt_roundpd_epu64(high, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
    const __mmask8 over = _mm512_cmplt_epu64_mask(ceil, base);
    _mm512_mask_storeu_epi64(low_.data() + size_ + (i - begin), lanes, floor);
    _mm512_mask_storeu_epi64(high_.data() + size_ + (i - begin), lanes,
                             _mm512_mask_mov_epi64(ceil, over, all));
  }
  return true;
}
#else
bool History::round_wide(const Cycles&, std::size_t, std::size_t, std::uint64_t) noexcept { return false; }
#endif

}  // namespace ptkit::time
