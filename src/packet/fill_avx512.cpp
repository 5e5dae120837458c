// Fills rows in three passes over some kilobytes, so that each pass has independent operations: start and
// first byte of each row; fields by first byte, 64 rows at a time; 64-bit cells, eight rows at a time.
#include <algorithm>

#include "packet/scan_avx512.h"

#if PT_SIMD_X86

namespace ptkit::packet::scan {
namespace {

constexpr std::size_t kRows = 1024;
constexpr std::size_t kMostBytes = 65536 - 64;  // positions have 16 bits; a run of PADs has no rows
constexpr std::uint8_t kSpecial = 0x02;         // code of special packets other than PSB

struct Chunk {
  std::uint64_t begin = 0;  // offset of the first row; positions are relative to it
  std::size_t rows = 0;
  std::size_t specials = 0;
  bool last_is_pad = false;
  bool stopped = false;  // before a packet for PacketDecoder
  alignas(64) std::uint16_t offset[kRows + 64];
  alignas(64) std::uint8_t code[kRows + 64];     // first byte, kSpecial or kPsbCode
  alignas(64) std::uint8_t bytes[kRows + 64];    // bytes of the raw payload
  alignas(64) std::uint8_t direct[kRows + 64];   // payload in the first byte
  alignas(64) std::uint8_t renewed[kRows + 64];  // RowTables::odd_new
  alignas(64) std::uint8_t second[kRows + 64];   // payload2
  std::uint32_t special[kRows + 64];             // rows
};

// Notes the special packets of a block after `count` rows. Returns the number of its packets before one for
// PacketDecoder, or 64.
[[gnu::noinline]] PT_TARGET_AVX512 unsigned note_specials(const std::uint8_t* at, const std::uint8_t* starts,
                                                          std::uint64_t special, std::uint64_t rows,
                                                          std::size_t count, Chunk& chunk) noexcept {
  for (; special != 0; special &= special - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(special));
    PacketKind kind{};
    if (!is_plain_special(at + starts[lane], kind)) return lane;
    const std::uint64_t before = rows & ((std::uint64_t{1} << lane) - 1);
    const auto row = static_cast<std::uint32_t>(count + static_cast<unsigned>(std::popcount(before)));
    chunk.special[chunk.specials++] = row;
    if (kind == PacketKind::PSB) chunk.code[row] = kPsbCode;
  }
  return 64;
}

// First pass, from chunk.begin on. offset[rows] is then the end of the last row, if that is no PAD.
PT_TARGET_AVX512 void find_rows(base::Bytes stream, bool skd007, std::size_t room, std::uint64_t limit,
                                Chunk& chunk) noexcept {
  const BlockConstants with = block_constants(skd007);
  const __m512i odd_hot = base::cpu::in_register(_mm512_load_si512(kTables.odd_hot.data()));
  const __m512i special_code = base::cpu::in_register(_mm512_set1_epi8(kSpecial));
  __m512i entry = _mm512_setzero_si512();
  const std::uint8_t* const begin = stream.data() + chunk.begin;
  const std::size_t most =
      std::min<std::size_t>({kMostBytes, stream.size() - chunk.begin, limit - chunk.begin + kLeastBytes});
  std::uint64_t pad_before = 0;  // the preceding packet is a PAD
  std::size_t base = 0;
  std::size_t count = 0;
  for (; count + 64 <= room && base + kLeastBytes <= most; base += 64) {
    const Block block = resolve_block(begin + base, with, entry);
    const __m512i starts = block.chain.starts;
    const __mmask64 inside = block.chain.inside;
    const __m512i hot = _mm512_permutexvar_epi8(block.upper, odd_hot);
    const __mmask64 marked = _mm512_mask_testn_epi8_mask(block.odd, hot, hot) | block.complex;
    const __m512i code =
        _mm512_permutexvar_epi8(starts, _mm512_mask_mov_epi8(block.bytes, marked, special_code));
    const std::uint64_t pads = _mm512_mask_testn_epi8_mask(inside, code, code);
    const std::uint64_t special = _mm512_mask_cmpeq_epi8_mask(inside, code, special_code);
    std::uint64_t rows = inside & ~(pads & (pads << 1 | pad_before));
    const __m512i offsets = _mm512_maskz_compress_epi8(rows, starts);
    put_offsets(offsets, base, chunk.offset + count);
    _mm512_storeu_si512(chunk.code + count, _mm512_maskz_compress_epi8(rows, code));
    if (special != 0) [[unlikely]] {
      alignas(64) std::uint8_t lanes[64];
      _mm512_store_si512(lanes, starts);
      const unsigned kept = note_specials(begin + base, lanes, special, rows, count, chunk);
      if (kept != 64) {
        const std::uint64_t keep = (std::uint64_t{1} << kept) - 1;
        chunk.rows = count + static_cast<unsigned>(std::popcount(rows & keep));
        chunk.offset[chunk.rows] = static_cast<std::uint16_t>(base + lanes[kept]);
        if (kept != 0) pad_before = pads >> (kept - 1) & 1;
        chunk.last_is_pad = pad_before != 0;
        chunk.stopped = true;
        return;
      }
    }
    count += static_cast<unsigned>(std::popcount(rows));
    pad_before = pads >> (std::popcount(static_cast<std::uint64_t>(inside)) - 1) & 1;
  }
  chunk.rows = count;
  chunk.offset[count] = static_cast<std::uint16_t>(base + offset_of(entry));
  chunk.last_is_pad = pad_before != 0;
}

// Second pass: cells and intermediate values of one byte.
PT_TARGET_AVX512 void read_codes(Chunk& chunk, const PacketColumns& columns) noexcept {
  const __m512i one = _mm512_set1_epi8(1);
  const __m512i two = _mm512_set1_epi8(2);
  const __m512i tnt_low = _mm512_load_si512(kRowTables.tnt_payload.data());
  const __m512i tnt_high = _mm512_load_si512(kRowTables.tnt_payload.data() + 64);
  for (std::size_t row = 0; row < chunk.rows; row += 64) {
    const __m512i code = _mm512_load_si512(chunk.code + row);
    const __m512i upper = _mm512_srli_epi16(code, 2);
    const __mmask64 low = _mm512_test_epi8_mask(code, one);
    const __mmask64 odd = _mm512_mask_testn_epi8_mask(low, code, two);
    const __mmask64 cyc = low & ~odd;
    _mm512_store_si512(chunk.bytes + row, _mm512_maskz_permutexvar_epi8(
                                              odd, upper, _mm512_load_si512(kRowTables.odd_bytes.data())));
    _mm512_store_si512(chunk.renewed + row, _mm512_maskz_permutexvar_epi8(
                                                odd, upper, _mm512_load_si512(kRowTables.odd_new.data())));
    __m512i direct = _mm512_permutex2var_epi8(tnt_low, _mm512_srli_epi16(code, 1), tnt_high);
    direct = _mm512_maskz_mov_epi8(~low, direct);
    const __m512i cycles = _mm512_and_si512(_mm512_srli_epi16(code, 3), _mm512_set1_epi8(31));
    _mm512_store_si512(chunk.direct + row, _mm512_mask_mov_epi8(direct, cyc, cycles));
    if (columns.payload2 != nullptr) {
      const __m512i second =
          _mm512_maskz_permutexvar_epi8(odd, upper, _mm512_load_si512(kRowTables.odd_payload2.data()));
      _mm512_store_si512(
          chunk.second + row,
          _mm512_mask_permutexvar_epi8(second, ~low, upper, _mm512_load_si512(kTables.even_bits.data())));
    }
    if (columns.kind != nullptr) {
      __m512i kind = _mm512_set1_epi8(static_cast<char>(PacketKind::CYC));
      kind = _mm512_mask_permutexvar_epi8(kind, odd, upper, _mm512_load_si512(kRowTables.odd_kind.data()));
      kind = _mm512_mask_permutexvar_epi8(kind, ~low, upper, _mm512_load_si512(kRowTables.even_kind.data()));
      _mm512_storeu_si512(columns.kind + row, kind);
    }
    if (columns.flags != nullptr) {
      _mm512_storeu_si512(
          columns.flags + row,
          _mm512_maskz_permutexvar_epi8(odd, upper, _mm512_load_si512(kRowTables.odd_flags.data())));
    }
  }
  std::fill_n(chunk.renewed + chunk.rows, 8, std::uint8_t{0});
}

// Third pass: wider cells. `last_ip` becomes the last IP after the last row.
PT_TARGET_AVX512 void put_cells(const std::uint8_t* stream, const Chunk& chunk, const PacketColumns& columns,
                                std::uint64_t& last_ip) noexcept {
  const __m512i all = _mm512_set1_epi64(-1);
  __m512i last = _mm512_set1_epi64(static_cast<long long>(last_ip));
  const __m512i begin = _mm512_set1_epi64(static_cast<long long>(chunk.begin));
  const std::uint8_t* const after_code = stream + chunk.begin + 1;
  for (std::size_t row = 0; row < chunk.rows; row += 8) {
    const __m256i offset = widen_offsets(chunk.offset + row);
    const __m256i size = _mm256_sub_epi32(widen_offsets(chunk.offset + row + 1), offset);
    if (columns.offset != nullptr) {
      _mm512_storeu_si512(columns.offset + row, _mm512_add_epi64(begin, _mm512_cvtepu32_epi64(offset)));
    }
    if (columns.size != nullptr) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(columns.size + row), size);
    }
    if (columns.payload2 != nullptr) _mm512_storeu_si512(columns.payload2 + row, widen(chunk.second + row));
    const __m512i code = widen(chunk.code + row);
    const __m512i raw = _mm512_i32gather_epi64(offset, after_code, 1);
    const __m512i bits = _mm512_slli_epi64(widen(chunk.bytes + row), 3);
    const __m512i read = _mm512_andnot_si512(_mm512_sllv_epi64(all, bits), raw);
    const __m512i renewed = widen(chunk.renewed + row);
    const __m512i ip = follow_ips(read, renewed, last);
    if (columns.ip != nullptr) {
      // A PSB replaces all bits, but has no IP and no bytes.
      const __mmask8 has = _mm512_test_epi64_mask(bits, bits) & _mm512_test_epi64_mask(renewed, renewed);
      _mm512_storeu_si512(columns.ip + row, _mm512_maskz_mov_epi64(has, ip));
    }
    if (columns.payload == nullptr) continue;
    __m512i payload = _mm512_or_si512(read, widen(chunk.direct + row));
    const __m512i wide_size = _mm512_cvtepu32_epi64(size);
    payload = _mm512_mask_mov_epi64(payload, _mm512_testn_epi64_mask(code, code), wide_size);
    const __m512i three = _mm512_set1_epi64(3);
    const __mmask8 cyc = _mm512_cmpeq_epi64_mask(_mm512_and_si512(code, three), three);
    if (cyc != 0) {
      // Seven bits of each byte after the first.
      const __m512i more = _mm512_slli_epi64(_mm512_sub_epi64(wide_size, _mm512_set1_epi64(1)), 3);
      const __m512i tail = _mm512_andnot_si512(_mm512_sllv_epi64(all, more), raw);
      const __m512i seven = _mm512_set1_epi64(0x7f << 5);
      const __m512i fourteen = _mm512_set1_epi64(0x7f << 12);
      const __m512i high = _mm512_or_si512(_mm512_and_si512(_mm512_slli_epi64(tail, 4), seven),
                                           _mm512_and_si512(_mm512_slli_epi64(tail, 3), fourteen));
      payload = _mm512_mask_or_epi64(payload, cyc, payload, high);
    }
    _mm512_storeu_si512(columns.payload + row, payload);
  }
  last_ip = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(last)));
}

// The last group of rows reads positions after them, which must be initialised.
void pad_chunk(Chunk& chunk) noexcept {
  std::fill_n(chunk.offset + chunk.rows + 1, 8, chunk.offset[chunk.rows]);
}

// continues_psb() of a packet that is not special, by its code: TNT, TIP, TIP.PGE and TIP.PGD end a PSB+.
bool ends_psb(std::uint8_t code) noexcept {
  constexpr std::uint8_t kIpKind = 0x1f;  // bits 7:5 are IPBytes
  if ((code & 1U) == 0) return code != 0;
  const unsigned kind = code & kIpKind;
  return kind == 0x0d || kind == 0x11 || kind == 0x01;
}

// Special packets by PacketDecoder, and the flag IN_PSB.
void put_specials(base::Bytes stream, const Chunk& chunk, const PacketColumns& columns,
                  bool& in_psb) noexcept {
  std::size_t done = 0;  // rows with a final IN_PSB
  const auto mark = [&](std::size_t end) {
    for (; in_psb && done < end; ++done) {
      in_psb = !ends_psb(chunk.code[done]);
      if (in_psb && columns.flags != nullptr) columns.flags[done] |= Packet::IN_PSB;
    }
    done = end;
  };
  for (std::size_t i = 0; i < chunk.specials; ++i) {
    const std::uint32_t row = chunk.special[i];
    mark(row);
    PacketDecoder decoder(stream, {.position = chunk.begin + chunk.offset[row], .in_psb = in_psb});
    Packet packet;
    static_cast<void>(decoder.next(packet));
    columns.put(row, packet);
    in_psb = decoder.state().in_psb;
    done = row + 1;
  }
  mark(chunk.rows);
}

}  // namespace

std::size_t fill_avx512(base::Bytes stream, DecoderState& state, bool skd007, const PacketColumns& columns,
                        std::size_t room, std::uint64_t limit) noexcept {
  std::size_t rows = 0;
  Chunk chunk;
  while (state.position + kLeastBytes <= stream.size() && state.position < limit) {
    chunk.begin = state.position;
    chunk.rows = chunk.specials = 0;
    chunk.stopped = false;
    find_rows(stream, skd007, std::min(kRows, room - rows), limit, chunk);
    if (chunk.last_is_pad) --chunk.rows;
    if (chunk.rows == 0) break;
    pad_chunk(chunk);
    const PacketColumns here = columns.from(rows);
    read_codes(chunk, here);
    put_cells(stream.data(), chunk, here, state.last_ip);
    put_specials(stream, chunk, here, state.in_psb);
    state.position = chunk.begin + chunk.offset[chunk.rows];
    rows += chunk.rows;
    if (chunk.stopped) break;
  }
  return rows;
}

}  // namespace ptkit::packet::scan
#endif
