#include <algorithm>

#include "packet/scan_avx512.h"

#if PT_SIMD_X86

namespace ptkit::packet::scan {
namespace {

constexpr std::size_t kMostIps = 2048;

// IPs that wait to be rebuilt: where their packets begin, and with which byte.
struct Ips {
  std::size_t count = 0;
  alignas(64) std::uint16_t place[kMostIps + 64];
  alignas(64) std::uint8_t code[kMostIps + 64];
  alignas(64) std::uint8_t bytes[kMostIps + 64];
  alignas(64) std::uint8_t renewed[kMostIps + 64];
};

PT_INLINE_AVX512 void put_offsets(__m512i places, std::uint32_t base, std::uint64_t timed,
                                  std::uint32_t* to) noexcept {
  const __m512i first = _mm512_set1_epi32(static_cast<int>(base));
  const __m512i flag = _mm512_set1_epi32(static_cast<int>(kTokenTimed));
  const auto sixteen = [&timed](unsigned part) { return static_cast<__mmask16>(timed >> (16 * part)); };
  const __m512i a = _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places)));
  const __m512i b = _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 1)));
  const __m512i c = _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 2)));
  const __m512i d = _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(places, 3)));
  _mm512_storeu_si512(to, _mm512_mask_or_epi32(a, sixteen(0), a, flag));
  _mm512_storeu_si512(to + 16, _mm512_mask_or_epi32(b, sixteen(1), b, flag));
  _mm512_storeu_si512(to + 32, _mm512_mask_or_epi32(c, sixteen(2), c, flag));
  _mm512_storeu_si512(to + 48, _mm512_mask_or_epi32(d, sixteen(3), d, flag));
}

// Of the special packets of a block: those that only tell time, up to the first other one, whose lane is in
// `kept` (64: there is none).
struct Specials {
  std::uint64_t timing = 0;
  unsigned kept = 64;
};
[[gnu::noinline]] Specials look_at_specials(const std::uint8_t* at, const std::uint8_t* starts,
                                            std::uint64_t special) noexcept {
  Specials found;
  for (; special != 0; special &= special - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(special));
    PacketKind kind{};
    const bool plain = is_plain_special(at + starts[lane], kind);
    if (!plain || (kind != PacketKind::TSC && kind != PacketKind::TMA)) {
      found.kept = lane;
      break;
    }
    found.timing |= std::uint64_t{1} << lane;
  }
  return found;
}

PT_TARGET_AVX512 void rebuild(const std::uint8_t* begin, Ips& ips, std::uint64_t& last_ip,
                              std::uint64_t* to) noexcept {
  const __m512i bytes_table = _mm512_load_si512(kRowTables.odd_bytes.data());
  const __m512i new_table = _mm512_load_si512(kRowTables.odd_new.data());
  for (std::size_t i = 0; i < ips.count; i += 64) {
    const __m512i upper = _mm512_srli_epi16(_mm512_load_si512(ips.code + i), 2);
    _mm512_store_si512(ips.bytes + i, _mm512_permutexvar_epi8(upper, bytes_table));
    _mm512_store_si512(ips.renewed + i, _mm512_permutexvar_epi8(upper, new_table));
  }
  // The last group sees IPs behind its own.
  std::fill_n(ips.renewed + ips.count, 8, std::uint8_t{0});
  std::fill_n(ips.place + ips.count, 8, std::uint16_t{0});
  const __m512i all = _mm512_set1_epi64(-1);
  __m512i last = _mm512_set1_epi64(static_cast<long long>(last_ip));
  for (std::size_t i = 0; i < ips.count; i += 8) {
    const __m512i raw = _mm512_i32gather_epi64(widen_places(ips.place + i), begin + 1, 1);
    const __m512i bits = _mm512_slli_epi64(widen(ips.bytes + i), 3);
    const __m512i read = _mm512_andnot_si512(_mm512_sllv_epi64(all, bits), raw);
    _mm512_storeu_si512(to + i, follow_ips(read, widen(ips.renewed + i), last));
  }
  last_ip = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(last)));
}

}  // namespace

PT_TARGET_AVX512 void tokens_avx512(base::Bytes stream, DecoderState& state, bool skd007, std::uint64_t limit,
                                    const TokenArrays& arrays, Tokens& tokens) noexcept {
  const BlockConstants with = block_constants(skd007);
  const HotConstants hot_with = hot_constants();
  const __m512i odd_token = simd::in_register(_mm512_load_si512(kRowTables.odd_token.data()));
  constexpr unsigned kTiming = hot_bit(PacketKind::MTC) | hot_bit(PacketKind::CYC);
  const __m512i timing_bits = simd::in_register(_mm512_set1_epi8(static_cast<char>(kTiming)));
  const __m512i token_bits =
      simd::in_register(_mm512_set1_epi8(static_cast<char>(0xff & ~(kTiming | hot_bit(PacketKind::PAD)))));
  const __m512i ip_bit = simd::in_register(_mm512_set1_epi8(TOKEN_HAS_IP));
  const std::uint8_t* const begin = stream.data() + state.position;
  const auto shift = static_cast<std::uint32_t>(state.position - tokens.begin);
  const std::uint64_t most = std::min<std::uint64_t>(limit + kLeastBytes, stream.size()) - state.position;
  Ips ips;
  ips.count = 0;
  __m512i entry = _mm512_setzero_si512();
  std::size_t count = tokens.count;
  std::uint64_t timed_before = tokens.timed ? 1 : 0;
  std::uint64_t position = 0;
  std::size_t base = 0;
  while (base + kLeastBytes <= most && count + 64 <= arrays.room && ips.count + 64 <= kMostIps) {
    const Block block = resolve_block(begin + base, with, entry);
    const __m512i starts = block.chain.starts;
    std::uint64_t inside = block.chain.inside;
    const __m512i hot = _mm512_maskz_permutexvar_epi8(inside, starts, hot_bits(block, hot_with));
    const std::uint64_t special = _mm512_mask_testn_epi8_mask(inside, hot, hot);
    std::uint64_t timing = _mm512_test_epi8_mask(hot, timing_bits);
    std::uint64_t token = _mm512_test_epi8_mask(hot, token_bits);
    bool stopped = false;
    base += 64;
    position = base + place_of(entry);
    if (special != 0) [[unlikely]] {
      alignas(64) std::uint8_t lanes[64];
      _mm512_store_si512(lanes, starts);
      const Specials found = look_at_specials(begin + base - 64, lanes, special);
      timing |= found.timing;
      if (found.kept != 64) {
        stopped = true;
        inside &= (std::uint64_t{1} << found.kept) - 1;
        timing &= inside;
        token &= inside;
        position = base - 64 + lanes[found.kept];
      }
    }
    // A carry runs from each packet that tells time through all that is no token, into the next token.
    std::uint64_t carried = 0;
    const bool over = __builtin_add_overflow(inside & ~token, timing, &carried);
    const bool over_again = __builtin_add_overflow(carried, timed_before, &carried);
    const auto packets = static_cast<unsigned>(std::popcount(inside));
    timed_before = packets == 64 ? (over || over_again) : carried >> packets & 1;
    const __m512i places = _mm512_maskz_compress_epi8(token, starts);
    put_offsets(places, shift + static_cast<std::uint32_t>(base - 64), _pext_u64(carried, token),
                arrays.offset + count);
    const __m512i first = _mm512_permutexvar_epi8(starts, block.bytes);
    const __m512i codes = _mm512_permutexvar_epi8(
        starts, _mm512_mask_permutexvar_epi8(block.bytes, block.odd, block.upper, odd_token));
    _mm512_storeu_si512(arrays.code + count, _mm512_maskz_compress_epi8(token, codes));
    const __mmask64 odd = _mm512_mask_test_epi8_mask(token, first, _mm512_set1_epi8(1));
    const __mmask64 with_ip = _mm512_mask_test_epi8_mask(odd, codes, ip_bit);
    put_places(_mm512_maskz_compress_epi8(with_ip, starts), base - 64, ips.place + ips.count);
    _mm512_storeu_si512(ips.code + ips.count, _mm512_maskz_compress_epi8(with_ip, first));
    ips.count += static_cast<unsigned>(std::popcount(static_cast<std::uint64_t>(with_ip)));
    count += static_cast<unsigned>(std::popcount(token));
    if (stopped) break;
  }
  rebuild(begin, ips, state.last_ip, arrays.ip + tokens.ips);
  tokens.ips += ips.count;
  tokens.count = count;
  tokens.timed = timed_before != 0;
  state.position += position;
}

}  // namespace ptkit::packet::scan
#endif
