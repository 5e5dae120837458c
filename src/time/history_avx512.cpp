// Appends eight limits, or answers eight queries, at once.
#include <bit>
#include <cstddef>

#include "base/cpu/cells_avx512.h"
#include "time/history.h"

namespace ptkit::time {

#if PT_SIMD_X86
namespace {

PT_INLINE_AVX512 __m512i all_of(std::uint64_t value) noexcept {
  return _mm512_set1_epi64(static_cast<long long>(value));
}

PT_INLINE_AVX512 __m512i widen_infos(const History::Info* infos) noexcept {
  return _mm512_cvtepu16_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(infos)));
}

}  // namespace

PT_TARGET_AVX512 bool History::put_wide(const Cycles& cycles, std::size_t begin, std::size_t end,
                                        std::uint64_t origin) noexcept {
  static_assert(sizeof(Extent) == 16 && offsetof(Info, rank) == 0 && offsetof(Info, flags) == 1);
  const __m512d zero = _mm512_setzero_pd();
  const __m512d most = _mm512_set1_pd(kConvertible);
  const __m512i base = all_of(origin);
  const __m512i all = _mm512_set1_epi64(-1);
  const __m512i last = all_of(kLastTime);
  const __m128i cycles_flag = _mm_set1_epi16(CYCLES << 8);
  std::size_t to = size_;
  for (std::size_t i = begin; i < end; i += 8, to += 8) {
    const auto left = static_cast<unsigned>(end - i);
    const auto lanes = static_cast<__mmask8>(left >= 8 ? 0xffU : (1U << left) - 1);
    const __m512d low = _mm512_maskz_max_pd(lanes, _mm512_maskz_loadu_pd(lanes, cycles.low.data() + i), zero);
    const __m512d high =
        _mm512_maskz_max_pd(lanes, _mm512_maskz_loadu_pd(lanes, cycles.high.data() + i), zero);
    if (_mm512_cmp_pd_mask(_mm512_maskz_max_pd(lanes, low, high), most, _CMP_NLT_UQ) != 0) return false;
    __m512i floor = _mm512_add_epi64(base, _mm512_cvttpd_epu64(low));
    floor = _mm512_mask_mov_epi64(floor, _mm512_cmplt_epu64_mask(floor, base), all);
    floor = _mm512_min_epu64(floor, last);
    const __m512i ceil =
        _mm512_add_epi64(base, _mm512_cvt_roundpd_epu64(high, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
    const __mmask8 over = _mm512_cmplt_epu64_mask(ceil, base);
    _mm512_mask_storeu_epi64(low_.data() + to, lanes, floor);
    _mm512_mask_storeu_epi64(high_.data() + to, lanes, _mm512_mask_mov_epi64(ceil, over, all));

    const __mmask8 first = base::cpu::halves(lanes & 0xfU);
    const __mmask8 second = base::cpu::halves(static_cast<unsigned>(lanes) >> 4U);
    _mm512_mask_storeu_epi64(extent_.data() + to, first,
                             _mm512_maskz_loadu_epi64(first, cycles.extent.data() + i));
    _mm512_mask_storeu_epi64(extent_.data() + to + 4, second,
                             _mm512_maskz_loadu_epi64(second, cycles.extent.data() + i + 4));
    const __m128i rank = _mm_cvtepu8_epi16(_mm_maskz_loadu_epi8(lanes, cycles.rank.data() + i));
    const __m128i flags = _mm_cvtepu8_epi16(_mm_maskz_loadu_epi8(lanes, cycles.flags.data() + i));
    const __m128i info = _mm_or_si128(_mm_or_si128(rank, _mm_slli_epi16(flags, 8)), cycles_flag);
    _mm_mask_storeu_epi16(info_.data() + to, lanes, info);
  }
  return true;
}

PT_TARGET_AVX512 std::size_t History::answer_wide(std::size_t at, std::uint64_t previous_offset,
                                                  std::uint64_t newest, std::span<const TimeQuery> queries,
                                                  TimeRange* out) const noexcept {
  static_assert(sizeof(TimeQuery) == 16 && sizeof(Extent) == 16 && sizeof(Info) == 2);
  static_assert(sizeof(TimeRange) == 16 && offsetof(TimeRange, error) == 8 &&
                offsetof(TimeRange, source) == 12 && offsetof(TimeRange, known) == 13);
  constexpr std::size_t kLanes = 8;
  constexpr unsigned kAll = 0xff;
  const auto named = [](Rank of) { return static_cast<long long>(source_of(of)); };
  const __m512i sources = _mm512_setr_epi64(named(Rank::NONE), named(Rank::CBR), named(Rank::TSC),
                                            named(Rank::MTC), named(Rank::CYC), 0, 0, 0);
  const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
  __m512i offset_before = all_of(previous_offset);
  __m512i lows_before = all_of(newest);
  std::size_t done = 0;
  for (; queries.size() - done >= kLanes && at + kLanes + 1 < size_; at += kLanes, done += kLanes) {
    const __m512i asked = _mm512_loadu_si512(queries.data() + done);
    const __m512i asked_4 = _mm512_loadu_si512(queries.data() + done + 4);
    const __m512i since = _mm512_permutex2var_epi64(asked, even, asked_4);
    const __m512i offset = _mm512_permutex2var_epi64(asked, odd, asked_4);
    const Extent* const next_extent = extent_.data() + at + 1;
    const __m512i extents = _mm512_loadu_si512(next_extent);
    const __m512i extents_4 = _mm512_loadu_si512(next_extent + 4);
    const __m512i first = _mm512_permutex2var_epi64(extents, even, extents_4);
    const __m512i last = _mm512_permutex2var_epi64(extents, odd, extents_4);
    const __m512i next = _mm512_alignr_epi64(all_of(next_extent[kLanes].first), first, 1);
    const __m512i low = _mm512_loadu_si512(low_.data() + at);
    const __m512i low_before = _mm512_alignr_epi64(low, lows_before, 7);
    const __m512i high = _mm512_loadu_si512(high_.data() + at + 1);
    const __m512i info = widen_infos(info_.data() + at + 1);

    const unsigned in_step = _mm512_cmpeq_epu64_mask(since, _mm512_alignr_epi64(offset, offset_before, 7));
    const unsigned inside = _mm512_cmpge_epu64_mask(offset, first) & _mm512_cmple_epu64_mask(offset, last) &
                            _mm512_cmplt_epu64_mask(offset, next);
    const unsigned forward = _mm512_cmpge_epu64_mask(low, low_before) &
                             _mm512_cmpge_epu64_mask(high, low_before) &
                             _mm512_cmplt_epu64_mask(high, all_of(kUnknown));
    const unsigned itself = _mm512_testn_epi64_mask(info, all_of(std::uint64_t{BEFORE_TNT} << 8U));

    const __m512i length = _mm512_sub_epi64(_mm512_max_epu64(high, low), low);
    const __m512i error = _mm512_min_epu64(length, all_of(std::numeric_limits<std::uint32_t>::max()));
    const __m512i rank = _mm512_max_epu64(_mm512_and_si512(info, all_of(0xff)),
                                          _mm512_and_si512(widen_infos(info_.data() + at), all_of(0xff)));
    const __m512i source = _mm512_slli_epi64(_mm512_permutexvar_epi64(rank, sources), 32);
    const __m512i rest = _mm512_or_si512(_mm512_or_si512(error, source), all_of(std::uint64_t{1} << 40U));
    _mm512_storeu_si512(out + done,
                        _mm512_permutex2var_epi64(low, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), rest));
    _mm512_storeu_si512(out + done + 4,
                        _mm512_permutex2var_epi64(low, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), rest));
    const unsigned good = in_step & inside & forward & itself;
    if (good != kAll) return done + static_cast<std::size_t>(std::countr_one(good));
    offset_before = offset;
    lows_before = low;
  }
  return done;
}
#else
bool History::put_wide(const Cycles&, std::size_t, std::size_t, std::uint64_t) noexcept { return false; }

std::size_t History::answer_wide(std::size_t, std::uint64_t, std::uint64_t, std::span<const TimeQuery>,
                                 TimeRange*) const noexcept {
  return 0;
}
#endif

}  // namespace ptkit::time
