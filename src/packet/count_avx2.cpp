// Counts with 32-byte registers: pointer doubling as in cpu/chain_avx512.h, on two blocks of 16 bytes at
// once.
#include <algorithm>

#include "packet/scan_kernels.h"

#if PT_SIMD_X86
#include <immintrin.h>

namespace ptkit::packet::scan {
namespace {

// Indexed by the upper four bits of a first byte that ends in 01.
struct NibbleTables {
  std::array<std::uint8_t, 16> ip_length{};  // low bits 0001 and 1101: IP packets
  std::array<std::uint8_t, 16> time_hot{};   // low bits 1001: MTC, or special
  std::array<std::uint8_t, 16> near_hot{};   // low bits 0001: TIP.PGD, TIP.PGE
  std::array<std::uint8_t, 16> far_hot{};    // low bits 1101: TIP, FUP
  // Tables::odd_renews of TIP and TIP.PGD. TIP.PGE counts as FUP here: it is rare.
  std::array<std::uint8_t, 16> renews{};
};
constexpr NibbleTables kNibbles = [] {
  NibbleTables tables;
  for (unsigned i = 0; i < 16; ++i) {
    const auto at = [i](unsigned low) { return i << 2 | low >> 2; };
    tables.ip_length[i] = kTables.odd_length[at(0x1)];
    tables.renews[i] = kTables.odd_renews[at(0x1)] & kTables.odd_renews[at(0xd)];
    tables.near_hot[i] = kTables.odd_hot[at(0x1)];
    tables.far_hot[i] = kTables.odd_hot[at(0xd)];
    tables.time_hot[i] = kTables.odd_hot[at(0x9)];
  }
  return tables;
}();

PT_INLINE_AVX2 __m256i table(const std::uint8_t* sixteen) noexcept {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen)));
}
PT_INLINE_AVX2 __m256i all_of(unsigned byte) noexcept { return _mm256_set1_epi8(static_cast<char>(byte)); }
PT_INLINE_AVX2 __m256i load(const std::uint8_t* at) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
PT_INLINE_AVX2 __m256i has(__m256i bytes, unsigned bit) noexcept {
  return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, all_of(bit)), all_of(bit));
}

// For each of 32 bytes: length of the packet that would begin there, its hot_bit(), and the bits of a TNT, or
// 0x80 for NibbleTables::renews.
struct Bytes32 {
  __m256i length, hot, bits;
};

PT_INLINE_AVX2 Bytes32 classify(const std::uint8_t* at, __m256i skd007) noexcept {
  const __m256i first = load(at);
  const __m256i second = load(at + 1);
  const __m256i third = load(at + 2);
  const __m256i one = all_of(1);
  const __m256i nibble = all_of(15);
  const __m256i low = _mm256_and_si256(first, nibble);
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(first, 4), nibble);
  const __m256i near = _mm256_cmpeq_epi8(low, one);
  const __m256i far = _mm256_cmpeq_epi8(low, all_of(0xd));
  const __m256i time = _mm256_cmpeq_epi8(low, all_of(9));
  const __m256i time_hot = _mm256_and_si256(time, _mm256_shuffle_epi8(table(kNibbles.time_hot.data()), high));
  const __m256i near_hot = _mm256_and_si256(near, _mm256_shuffle_epi8(table(kNibbles.near_hot.data()), high));
  const __m256i far_hot = _mm256_and_si256(far, _mm256_shuffle_epi8(table(kNibbles.far_hot.data()), high));
  // CYC: up to three bytes.
  const __m256i cyc = has(first, 3);
  const __m256i cyc_2 = _mm256_and_si256(cyc, has(first, 4));
  const __m256i cyc_3 = _mm256_and_si256(cyc_2, has(second, 1));
  const __m256i cyc_4 = _mm256_and_si256(cyc_3, has(third, 1));
  const __m256i damaged = _mm256_and_si256(
      _mm256_and_si256(cyc_2, skd007),
      _mm256_and_si256(_mm256_cmpeq_epi8(second, all_of(2)), _mm256_cmpeq_epi8(third, all_of(0xf3))));
  const __m256i plain_cyc = _mm256_andnot_si256(_mm256_or_si256(cyc_4, damaged), cyc);
  const __m256i pad = _mm256_cmpeq_epi8(first, _mm256_setzero_si256());
  const __m256i even = _mm256_cmpeq_epi8(_mm256_and_si256(first, one), _mm256_setzero_si256());
  const __m256i tnt =
      _mm256_andnot_si256(_mm256_cmpeq_epi8(first, all_of(2)), _mm256_andnot_si256(pad, even));
  Bytes32 found;
  // Special packets count as one byte: no later byte of the block is used.
  found.length = _mm256_blendv_epi8(one, _mm256_shuffle_epi8(table(kNibbles.ip_length.data()), high),
                                    _mm256_or_si256(near, far));
  found.length = _mm256_sub_epi8(found.length, _mm256_cmpgt_epi8(time_hot, _mm256_setzero_si256()));
  found.length = _mm256_sub_epi8(found.length, _mm256_add_epi8(cyc_2, cyc_3));
  const __m256i even_hot = _mm256_or_si256(_mm256_and_si256(pad, all_of(hot_bit(PacketKind::PAD))),
                                           _mm256_and_si256(tnt, all_of(hot_bit(PacketKind::TNT_8))));
  found.hot = _mm256_or_si256(_mm256_or_si256(time_hot, near_hot), _mm256_or_si256(far_hot, even_hot));
  found.hot = _mm256_or_si256(found.hot, _mm256_and_si256(plain_cyc, all_of(hot_bit(PacketKind::CYC))));
  // Index of the highest set bit, less one: from the high half, or else from the low half.
  const __m256i from_high = _mm256_shuffle_epi8(
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6)), high);
  const __m256i from_low = _mm256_shuffle_epi8(
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2)), low);
  const __m256i renews = _mm256_shuffle_epi8(table(kNibbles.renews.data()), high);
  found.bits = _mm256_or_si256(_mm256_and_si256(tnt, _mm256_max_epu8(from_high, from_low)),
                               _mm256_and_si256(_mm256_or_si256(near, far), renews));
  return found;
}

// One step from positions 0x70..0x7f (inside a block of 16). Positions from 0x80 on stay.
PT_INLINE_AVX2 __m256i step(__m256i next, __m256i from) noexcept {
  return _mm256_max_epu8(_mm256_shuffle_epi8(next, from), from);
}

// Positions of the packets of two blocks, in order. `entry` is a position as above, in all bytes.
PT_INLINE_AVX2 __m256i resolve(__m256i length, __m128i& entry) noexcept {
  const __m256i place = _mm256_broadcastsi128_si256(_mm_setr_epi8(
      0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x7b, 0x7c, 0x7d, 0x7e, 0x7f));
  const __m256i next_1 = _mm256_add_epi8(place, length);
  const __m256i next_2 = step(next_1, next_1);
  const __m256i next_4 = step(next_2, next_2);
  const __m256i next_8 = step(next_4, next_4);
  const __m256i next_16 = step(next_8, next_8);
  // A position n bytes after a block is 0x80 + n; in the next block it is 0x70 + n.
  const __m128i after = _mm_set1_epi8(0x10);
  const __m128i middle = _mm_sub_epi8(_mm_shuffle_epi8(_mm256_castsi256_si128(next_16), entry), after);
  __m256i starts = _mm256_inserti128_si256(_mm256_castsi128_si256(entry), middle, 1);
  entry = _mm_sub_epi8(_mm_shuffle_epi8(_mm256_extracti128_si256(next_16, 1), middle), after);
  starts = _mm256_blendv_epi8(starts, step(next_1, starts), _mm256_set1_epi16(static_cast<short>(0xff00)));
  starts = _mm256_blend_epi16(starts, step(next_2, starts), 0xaa);
  starts = _mm256_blend_epi32(starts, step(next_4, starts), 0xaa);
  return _mm256_blend_epi32(starts, step(next_8, starts), 0xcc);
}

PT_INLINE_AVX2 unsigned place_of(__m128i entry) noexcept {
  return static_cast<unsigned>(_mm_cvtsi128_si32(entry)) & 15;
}

struct Sums {
  __m256i hot[8];  // per byte: packets of kHot[i] since the last flush
  __m256i bits;    // TNT bits, in quadwords
};

PT_INLINE_AVX2 std::uint64_t sum_quadwords(__m256i words) noexcept {
  alignas(32) std::uint64_t parts[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(parts), words);
  return parts[0] + parts[1] + parts[2] + parts[3];
}

PT_INLINE_AVX2 void flush(Sums& sums, PacketCounts& counts) noexcept {
  const __m256i zero = _mm256_setzero_si256();
  for (std::size_t i = 0; i < 8; ++i) {
    counts.packets[static_cast<std::size_t>(kHot[i])] += sum_quadwords(_mm256_sad_epu8(sums.hot[i], zero));
    sums.hot[i] = zero;
  }
  counts.tnt_bits += sum_quadwords(sums.bits);
  sums.bits = zero;
}

PT_INLINE_AVX2 void add(__m256i hot, __m256i bits, Sums& sums) noexcept {
  for (unsigned i = 0; i < 8; ++i) {
    sums.hot[i] = _mm256_sub_epi8(sums.hot[i], _mm256_cmpeq_epi8(hot, all_of(1u << i)));
  }
  const __m256i counted = _mm256_and_si256(bits, all_of(0x7f));
  sums.bits = _mm256_add_epi64(sums.bits, _mm256_sad_epu8(counted, _mm256_setzero_si256()));
}

}  // namespace

PT_TARGET_AVX2 void count_avx2(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept {
  constexpr unsigned kBlocksPerFlush = 255;
  const __m256i skd007 = all_of(run.skd007 ? 0xff : 0);
  const __m256i zero = _mm256_setzero_si256();
  const std::uint8_t* const data = stream.data();
  const std::uint64_t last =
      stream.size() < kLeastBytes ? 0 : std::min<std::uint64_t>(stream.size() - kLeastBytes + 1, run.limit);
  Sums sums{};
  unsigned blocks = 0;
  __m128i entry = _mm_set1_epi8(0x70);
  std::uint64_t base = run.position;
  while (base < last) {
    const Bytes32 bytes = classify(data + base, skd007);
    const std::uint64_t begin = base + place_of(entry);
    const __m256i starts = resolve(bytes.length, entry);
    // Positions from 0x80 on give zeros.
    __m256i hot = _mm256_shuffle_epi8(bytes.hot, starts);
    __m256i bits = _mm256_shuffle_epi8(bytes.bits, starts);
    const auto inside = ~static_cast<unsigned>(_mm256_movemask_epi8(starts));
    const unsigned special =
        static_cast<unsigned>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(hot, zero))) & inside;
    std::uint64_t next = base + 32;
    bool leaves = false;
    if (special != 0) [[unlikely]] {
      // Counts the packets before the first special one, then continues after it.
      const auto lane = static_cast<unsigned>(std::countr_zero(special));
      alignas(32) std::uint8_t lanes[32];
      _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), starts);
      const __m256i order = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                                             19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
      const __m256i keep = _mm256_cmpgt_epi8(all_of(lane), order);
      hot = _mm256_and_si256(hot, keep);
      bits = _mm256_and_si256(bits, keep);
      next = base + (lanes[lane] & 15u) + (lane & 16u);
      const std::uint8_t* const at = data + next;
      leaves = !count_special(at, next, run, counts);
      if (!leaves) next += special_length(at);
      entry = _mm_set1_epi8(0x70);
    }
    add(hot, bits, sums);
    if (_mm256_movemask_epi8(bits) != 0) run.checkpoint = std::max(run.checkpoint, begin);
    base = next;
    if (++blocks == kBlocksPerFlush || leaves) [[unlikely]] {
      flush(sums, counts);
      blocks = 0;
      if (leaves) break;
    }
  }
  flush(sums, counts);
  run.position = base + place_of(entry);
}

}  // namespace ptkit::packet::scan
#endif
