// Scans 64 bytes of packets at once: finds the first byte of each packet and classifies it. For packet scans,
// and those of src/time.
#pragma once

#include "base/cpu/cells_avx512.h"
#include "base/cpu/chain_avx512.h"
#include "packet/scan_kernels.h"

#if PT_SIMD_X86

namespace ptkit::packet::scan {

struct Block {
  base::cpu::Chain chain;
  __m512i bytes;
  __m512i upper;        // upper six bits of each byte, as a table index
  __mmask64 even, odd;  // first bytes: PAD, TNT or 02; ending in 01
  __mmask64 cyc;        // a CYC of up to three bytes
  __mmask64 complex;    // another CYC, or one that erratum SKD007 may have damaged
};

// Constants of resolve_block(), loaded once.
struct BlockConstants {
  __m512i one, two, four, ovf, odd_length, slot_length, slot_matrix;
  base::cpu::ChainConstants chain;
  __mmask64 skd007;
};

PT_INLINE_AVX512 BlockConstants block_constants(bool skd007) noexcept {
  using base::cpu::in_register;
  return {in_register(_mm512_set1_epi8(1)),
          in_register(_mm512_set1_epi8(2)),
          in_register(_mm512_set1_epi8(4)),
          in_register(_mm512_set1_epi8(static_cast<char>(0xf3))),
          in_register(_mm512_load_si512(kTables.odd_length.data())),
          in_register(_mm512_load_si512(kTables.slot_length.data())),
          in_register(_mm512_set1_epi64(static_cast<long long>(kSlotMatrix))),
          base::cpu::chain_constants(),
          skd007 ? ~__mmask64{0} : 0};
}

// `at` has kLeastBytes readable bytes. `skd007`: all bits set to search for that pattern. `entry`: as for
// resolve_chain().
PT_INLINE_AVX512 Block resolve_block(const std::uint8_t* at, const BlockConstants& with,
                                     __m512i& entry) noexcept {
  Block block;
  const __m512i first = _mm512_loadu_si512(at);
  const __m512i second = _mm512_loadu_si512(at + 1);
  const __m512i third = _mm512_loadu_si512(at + 2);
  block.bytes = first;
  block.upper = _mm512_srli_epi16(first, 2);
  const __mmask64 low = _mm512_test_epi8_mask(first, with.one);
  block.odd = _mm512_mask_testn_epi8_mask(low, first, with.two);
  block.even = ~low;
  // CYC: bit 2 of the first byte, and bit 0 of the other bytes, show whether another byte follows.
  const __mmask64 cyc = _mm512_mask_test_epi8_mask(low, first, with.two);
  const __mmask64 cyc_2 = _mm512_mask_test_epi8_mask(cyc, first, with.four);
  const __mmask64 cyc_3 = _mm512_mask_test_epi8_mask(cyc_2, second, with.one);
  const __mmask64 cyc_4 = _mm512_mask_test_epi8_mask(cyc_3, third, with.one);
  const __mmask64 damaged = _mm512_mask_cmpeq_epi8_mask(
      _mm512_mask_cmpeq_epi8_mask(cyc_2 & with.skd007, second, with.two), third, with.ovf);
  block.complex = cyc_4 | damaged;
  block.cyc = cyc & ~block.complex;
  const __mmask64 extended = _mm512_cmpeq_epi8_mask(first, with.two);
  __m512i length = _mm512_mask_permutexvar_epi8(with.one, block.odd, block.upper, with.odd_length);
  length = _mm512_mask_add_epi8(length, cyc_2, length, with.one);
  length = _mm512_mask_add_epi8(length, cyc_3, length, with.one);
  const __m512i slot = _mm512_gf2p8affine_epi64_epi8(second, with.slot_matrix, 0);
  length = _mm512_mask_permutexvar_epi8(length, extended, slot, with.slot_length);
  block.even &= ~extended;
  block.chain = base::cpu::resolve_chain(length, with.chain, entry);
  return block;
}

// hot_bit() of the packet that would begin at each byte; 0: special.
struct HotConstants {
  __m512i odd, even, cyc;
};
PT_INLINE_AVX512 HotConstants hot_constants() noexcept {
  using base::cpu::in_register;
  return {in_register(_mm512_load_si512(kTables.odd_hot.data())),
          in_register(_mm512_load_si512(kTables.even_hot.data())),
          in_register(_mm512_set1_epi8(static_cast<char>(hot_bit(PacketKind::CYC))))};
}
PT_INLINE_AVX512 __m512i hot_bits(const Block& block, const HotConstants& with) noexcept {
  const __m512i odd = _mm512_maskz_permutexvar_epi8(block.odd, block.upper, with.odd);
  const __m512i both = _mm512_mask_permutexvar_epi8(odd, block.even, block.upper, with.even);
  return _mm512_mask_mov_epi8(both, block.cyc, with.cyc);
}

// The offset within the block that `entry` encodes.
PT_INLINE_AVX512 unsigned offset_of(__m512i entry) noexcept {
  return static_cast<unsigned>(_mm_cvtsi128_si32(_mm512_castsi512_si128(entry))) & 63;
}

// Stores the offsets of the packets of a block that begins at `base`.
PT_INLINE_AVX512 void put_offsets(__m512i offsets, std::size_t base, std::uint16_t* to) noexcept {
  const __m512i first = _mm512_set1_epi16(static_cast<short>(base));
  const __m512i low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(offsets));
  const __m512i high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(offsets, 1));
  _mm512_storeu_si512(to, _mm512_add_epi16(first, low));
  _mm512_storeu_si512(to + 32, _mm512_add_epi16(first, high));
}

// Widens eight bytes, or positions, to 64-bit lanes.
PT_INLINE_AVX512 __m512i widen(const std::uint8_t* eight) noexcept {
  return _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(eight)));
}

PT_INLINE_AVX512 __m256i widen_offsets(const std::uint16_t* eight) noexcept {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(eight)));
}

// Parallel prefix (Hillis-Steele scan) over IPs. Each lane replaces bits of the previous IP
// (RowTables::odd_new), starting from `last` (all lanes), which becomes the IP of lane 7. A lane is a map
// "keep some bits, set others"; three rounds compose each map with all earlier ones.
PT_INLINE_AVX512 __m512i follow_ips(__m512i read, __m512i renewed, __m512i& last) noexcept {
  const __m512i all = _mm512_set1_epi64(-1);
  const __mmask8 extended = _mm512_test_epi64_mask(renewed, _mm512_set1_epi64(kSignExtended));
  const __m512i whole = _mm512_mask_srai_epi64(read, extended, _mm512_slli_epi64(read, 16), 16);
  __m512i keep = _mm512_sllv_epi64(all, renewed);
  __m512i set = _mm512_andnot_si512(keep, whole);
  const __m512i none = _mm512_setzero_si512();
  constexpr int kSetOrBoth = 0xf8;  // set | (earlier & keep)
  set = _mm512_ternarylogic_epi64(set, _mm512_alignr_epi64(set, none, 7), keep, kSetOrBoth);
  keep = _mm512_and_si512(keep, _mm512_alignr_epi64(keep, all, 7));
  set = _mm512_ternarylogic_epi64(set, _mm512_alignr_epi64(set, none, 6), keep, kSetOrBoth);
  keep = _mm512_and_si512(keep, _mm512_alignr_epi64(keep, all, 6));
  set = _mm512_ternarylogic_epi64(set, _mm512_alignr_epi64(set, none, 4), keep, kSetOrBoth);
  keep = _mm512_and_si512(keep, _mm512_alignr_epi64(keep, all, 4));
  const __m512i ip = _mm512_ternarylogic_epi64(set, last, keep, kSetOrBoth);
  last = _mm512_permutexvar_epi64(_mm512_set1_epi64(7), ip);
  return ip;
}

}  // namespace ptkit::packet::scan
#endif
