#include <algorithm>

#include "packet/scan_avx512.h"

#if PT_SIMD_X86

namespace ptkit::packet::scan {
namespace {

// Bytes between two notes of a checkpoint for the last IP and in_psb. Every PSB is a checkpoint as well.
constexpr std::uint64_t kNoteEvery = 256 * 64;

struct Sums {
  __m512i total;  // quadword i: packets of kHot[i]
  __m512i bits;   // TNT bits, in quadwords
  __m512i seen;   // bit 7 of any byte: Tables::odd_renews
};

// Counts the special packets among the starts. Returns the number of packets before the first one for
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

struct CountConstants {
  BlockConstants block;
  HotConstants hot;
  __m512i odd_renews, even_bits, columns, transpose, low_seven;
};

// Moves byte i of each quadword to quadword i.
alignas(64) constexpr auto kTranspose = [] {
  std::array<std::uint8_t, 64> order{};
  for (std::uint8_t i = 0; i < 64; ++i) order[i] = static_cast<std::uint8_t>(i % 8 * 8 + i / 8);
  return order;
}();

PT_INLINE_AVX512 CountConstants count_constants(bool skd007) noexcept {
  using base::cpu::in_register;
  return {block_constants(skd007),
          hot_constants(),
          in_register(_mm512_load_si512(kTables.odd_renews.data())),
          in_register(_mm512_load_si512(kTables.even_bits.data())),
          in_register(_mm512_set1_epi64(static_cast<long long>(0x8040201008040201))),
          in_register(_mm512_load_si512(kTranspose.data())),
          in_register(_mm512_set1_epi8(0x7f))};
}

// Classification of the packets of a block: hot_bit(), and TNT bits or Tables::odd_renews.
struct Counted {
  __m512i hot, more;
};

PT_INLINE_AVX512 void add_block(const Counted& block, const CountConstants& with, Sums& sums) noexcept {
  // 8x8 bit transpose of each quadword: byte i gets bit i of all eight bytes.
  const __m512i flags = _mm512_gf2p8affine_epi64_epi8(with.columns, block.hot, 0);
  const __m512i by_kind = _mm512_permutexvar_epi8(with.transpose, _mm512_popcnt_epi8(flags));
  sums.total = _mm512_add_epi64(sums.total, _mm512_sad_epu8(by_kind, _mm512_setzero_si512()));
  sums.seen = _mm512_or_si512(sums.seen, block.more);
  const __m512i bits = _mm512_and_si512(block.more, with.low_seven);
  sums.bits = _mm512_add_epi64(sums.bits, _mm512_sad_epu8(bits, _mm512_setzero_si512()));
}

// Counts blocks from `base` to `end`, or to a block with special packets, which it returns.
[[gnu::noinline]] PT_TARGET_AVX512 std::uint64_t count_blocks(const std::uint8_t* data, std::uint64_t base,
                                                              std::uint64_t end, bool skd007, __m512i& entry_,
                                                              Sums& sums_, base::cpu::Chain& chain,
                                                              Counted& last,
                                                              std::uint64_t& special) noexcept {
  const CountConstants with = count_constants(skd007);
  __m512i entry = entry_;
  Sums sums = sums_;
  special = 0;
  for (; base < end; base += 64) {
    const Block block = resolve_block(data + base, with.block, entry);
    Counted counted{hot_bits(block, with.hot),
                    _mm512_maskz_permutexvar_epi8(block.odd, block.upper, with.odd_renews)};
    counted.more = _mm512_mask_permutexvar_epi8(counted.more, block.even, block.upper, with.even_bits);
    counted.hot = _mm512_maskz_permutexvar_epi8(block.chain.inside, block.chain.starts, counted.hot);
    counted.more = _mm512_maskz_permutexvar_epi8(block.chain.inside, block.chain.starts, counted.more);
    special = _mm512_mask_testn_epi8_mask(block.chain.inside, counted.hot, counted.hot);
    if (special != 0) [[unlikely]] {
      chain = block.chain;
      last = counted;
      break;
    }
    add_block(counted, with, sums);
  }
  entry_ = entry;
  sums_ = sums;
  return base;
}

PT_TARGET_AVX512 void store(const Sums& sums, PacketCounts& counts) noexcept {
  alignas(64) std::uint64_t total[8];
  _mm512_store_si512(total, sums.total);
  for (unsigned i = 0; i < 8; ++i) counts.packets[static_cast<std::size_t>(kHot[i])] += total[i];
  counts.tnt_bits += static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sums.bits));
}

}  // namespace

PT_TARGET_AVX512 void count_avx512(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept {
  const __m512i zero = _mm512_setzero_si512();
  Sums sums{zero, zero, zero};
  __m512i entry = zero;
  const std::uint64_t last =
      stream.size() < kLeastBytes ? 0 : std::min(stream.size() - kLeastBytes + 1, run.limit);
  std::uint64_t base = run.position;
  while (base < last) {
    const std::uint64_t noted = base + offset_of(entry);
    const std::uint64_t end = std::min(base + kNoteEvery, last);
    sums.seen = zero;
    bool stopped = false;
    while (base < end && !stopped) {
      base::cpu::Chain chain;
      Counted block;
      std::uint64_t special = 0;
      base = count_blocks(stream.data(), base, end, run.skd007, entry, sums, chain, block, special);
      if (special == 0) break;
      alignas(64) std::uint8_t starts[64];
      _mm512_store_si512(starts, chain.starts);
      const unsigned kept = count_specials(stream.data() + base, base, starts, special, run, counts);
      stopped = kept != 64;
      if (stopped) {
        const __mmask64 keep = (__mmask64{1} << kept) - 1;
        block = {_mm512_maskz_mov_epi8(keep, block.hot), _mm512_maskz_mov_epi8(keep, block.more)};
        run.position = base + starts[kept];
      }
      add_block(block, count_constants(run.skd007), sums);
      base += 64;
    }
    if (_mm512_movepi8_mask(sums.seen) != 0) run.checkpoint = std::max(run.checkpoint, noted);
    if (stopped) {
      store(sums, counts);
      return;
    }
  }
  run.position = base + offset_of(entry);
  store(sums, counts);
}

}  // namespace ptkit::packet::scan
#endif
