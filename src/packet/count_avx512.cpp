#include "packet/scan_avx512.h"

#if PT_SIMD_X86

namespace ptkit::packet::scan {
namespace {

// Blocks between two flushes: at most 31, so that the counts of a kind, at most 8 per block and byte, fit
// into a byte. Fewer, since what lies behind the last flush is read again for the last IP.
constexpr unsigned kBlocksPerFlush = 16;

struct Sums {
  __m512i hot;    // byte i of each quadword: packets of kHot[i], of the blocks since the last flush
  __m512i bits;   // TNT bits, in quadwords
  __m512i seen;   // bit 7 of any byte: an IP that does not need the last one
  __m512i total;  // quadword i: packets of kHot[i]
};

// Quadword i of the total gets byte i of each quadword.
PT_INLINE_AVX512 void flush(Sums& sums) noexcept {
  alignas(64) static constexpr auto kTranspose = [] {
    std::array<std::uint8_t, 64> order{};
    for (std::uint8_t i = 0; i < 64; ++i) order[i] = static_cast<std::uint8_t>(i % 8 * 8 + i / 8);
    return order;
  }();
  const __m512i by_kind = _mm512_permutexvar_epi8(_mm512_load_si512(kTranspose.data()), sums.hot);
  sums.total = _mm512_add_epi64(sums.total, _mm512_sad_epu8(by_kind, _mm512_setzero_si512()));
  sums.hot = _mm512_setzero_si512();
}

// Counts the special packets among the starts; returns the number of packets before the first that is left to
// PacketDecoder, or 64.
[[gnu::noinline]] unsigned count_specials(const std::uint8_t* at, std::uint64_t offset,
                                          const std::uint8_t* starts, std::uint64_t special, CountRun& run,
                                          PacketCounts& counts) noexcept {
  for (; special != 0; special &= special - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(special));
    const std::uint8_t start = starts[lane];
    if (!count_special(at + start, offset + start, run, counts)) return lane;
  }
  return 64;
}

PT_TARGET_AVX512 void store(const Sums& sums, PacketCounts& counts) noexcept {
  alignas(64) std::uint64_t total[8];
  _mm512_store_si512(total, sums.total);
  for (unsigned i = 0; i < 8; ++i) counts.packets[static_cast<std::size_t>(kHot[i])] += total[i];
  counts.tnt_bits += static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sums.bits));
}

}  // namespace

PT_TARGET_AVX512 void count_avx512(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept {
  using simd::in_register;
  const BlockConstants with = block_constants(run.skd007);
  const HotConstants hot_with = hot_constants();
  const __m512i odd_whole = in_register(_mm512_load_si512(kTables.odd_whole.data()));
  const __m512i even_bits = in_register(_mm512_load_si512(kTables.even_bits.data()));
  const __m512i columns = in_register(_mm512_set1_epi64(static_cast<long long>(0x8040201008040201)));
  const __m512i low_seven = in_register(_mm512_set1_epi8(0x7f));
  const __m512i zero = _mm512_setzero_si512();
  Sums sums{zero, zero, zero, zero};
  __m512i entry = zero;
  std::uint64_t base = run.position;
  std::uint64_t flush_position = base;
  unsigned blocks = kBlocksPerFlush;
  unsigned kept = 64;
  while (base + kLeastBytes <= stream.size() && base < run.limit) {
    const std::uint8_t* at = stream.data() + base;
    const Block block = resolve_block(at, with, entry);
    __mmask64 inside = block.chain.inside;
    __m512i hot = hot_bits(block, hot_with);
    __m512i more = _mm512_maskz_permutexvar_epi8(block.odd, block.upper, odd_whole);
    more = _mm512_mask_permutexvar_epi8(more, block.even, block.upper, even_bits);
    hot = _mm512_maskz_permutexvar_epi8(inside, block.chain.starts, hot);
    more = _mm512_maskz_permutexvar_epi8(inside, block.chain.starts, more);
    const __mmask64 special = _mm512_mask_testn_epi8_mask(inside, hot, hot);
    if (special != 0) [[unlikely]] {
      alignas(64) std::uint8_t starts[64];
      _mm512_store_si512(starts, block.chain.starts);
      kept = count_specials(at, base, starts, special, run, counts);
      if (kept != 64) {
        const __mmask64 keep = (__mmask64{1} << kept) - 1;
        hot = _mm512_maskz_mov_epi8(keep, hot);
        more = _mm512_maskz_mov_epi8(keep, more);
        run.position = base + starts[kept];
      }
    }
    // The 8x8 bits of each quadword change sides: byte i gets bit i of all eight.
    const __m512i flags = _mm512_gf2p8affine_epi64_epi8(columns, hot, 0);
    sums.hot = _mm512_add_epi8(sums.hot, _mm512_popcnt_epi8(flags));
    sums.seen = _mm512_or_si512(sums.seen, more);
    const __m512i bits = _mm512_and_si512(more, low_seven);
    sums.bits = _mm512_add_epi64(sums.bits, _mm512_sad_epu8(bits, zero));
    base += 64;
    if (--blocks == 0 || kept != 64) [[unlikely]] {
      flush(sums);
      if (_mm512_movepi8_mask(sums.seen) != 0 && flush_position > run.checkpoint)
        run.checkpoint = flush_position;
      if (kept != 64) break;
      sums.seen = zero;
      blocks = kBlocksPerFlush;
      flush_position = base + place_of(entry);
    }
  }
  if (kept == 64) {
    flush(sums);
    if (_mm512_movepi8_mask(sums.seen) != 0 && flush_position > run.checkpoint)
      run.checkpoint = flush_position;
    run.position = base + place_of(entry);
  }
  store(sums, counts);
}

}  // namespace ptkit::packet::scan
#endif
