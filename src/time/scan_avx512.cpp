// Vectorised FrameReader::scan_from(): 64 bytes at once. Each lane is a packet; PADs are left out.
#include "base/cpu/target.h"

#if PT_SIMD_X86

#include <algorithm>
#include <array>
#include <bit>

#include "packet/scan_avx512.h"
#include "time/reader.h"

namespace ptkit::time {
namespace {

namespace scan = packet::scan;
using packet::PacketKind;

// Bytes that a block reads, with the rest of its last packet.
constexpr std::uint64_t kBlockBytes = 64 + 16;
constexpr std::size_t kMostPoints = 64;  // of a block

PT_INLINE_AVX512 __mmask64 lanes_of(__m512i hot, unsigned bits) noexcept {
  return _mm512_test_epi8_mask(hot, _mm512_set1_epi8(static_cast<char>(bits)));
}

constexpr unsigned bit(PacketKind kind) { return scan::hot_bit(kind); }

// The packets of a block in stream order. Bit j of a mask is packet j.
struct Row {
  __m512i starts;
  std::uint64_t cyc, tnt, ip, fup, mtc, partial;
  unsigned count;
};

PT_INLINE_AVX512 Row row_of(const scan::Block& block, __m512i hot, __mmask64 lanes) noexcept {
  const __m512i starts = _mm512_maskz_compress_epi8(lanes, block.chain.starts);
  const __m512i kinds = _mm512_maskz_compress_epi8(lanes, hot);
  const __m512i first = _mm512_permutexvar_epi8(starts, block.bytes);
  return {starts,
          lanes_of(kinds, bit(PacketKind::CYC)),
          lanes_of(kinds, bit(PacketKind::TNT_8)),
          lanes_of(kinds, bit(PacketKind::TIP) | bit(PacketKind::TIP_PGE) | bit(PacketKind::TIP_PGD)),
          lanes_of(kinds, bit(PacketKind::FUP)),
          lanes_of(kinds, bit(PacketKind::MTC)),
          ~_mm512_movepi8_mask(first),  // TNT packets with fewer than six bits
          static_cast<unsigned>(std::popcount(lanes))};
}

// True if a block has only TNT and PAD from a packet boundary on.
PT_INLINE_AVX512 bool is_tnt_from(const std::uint8_t* at, unsigned from) noexcept {
  const __m512i bytes = _mm512_loadu_si512(at);
  const __mmask64 others =
      _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(1)) | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(2));
  return others >> from == 0;
}

// Decodes the counts of CYC packets of up to three bytes at `starts`.
PT_INLINE_AVX512 void store_cycles(const std::uint8_t* at, __m512i starts, unsigned count,
                                   double* out) noexcept {
  alignas(64) std::array<std::uint8_t, 64> bytes[3];
  for (unsigned i = 0; i < 3; ++i) {
    _mm512_store_si512(bytes[i].data(), _mm512_permutexvar_epi8(starts, _mm512_loadu_si512(at + i)));
  }
  const auto load = [&](unsigned i, unsigned from) PT_TARGET_AVX512 {
    return _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes[i].data() + from)));
  };
  for (unsigned from = 0; from < count; from += 16) {
    const __m512i first = load(0, from);
    const __m512i second = load(1, from);
    const __m512i third = load(2, from);
    const __mmask16 two = _mm512_test_epi32_mask(first, _mm512_set1_epi32(4));
    const __mmask16 three = _mm512_mask_test_epi32_mask(two, second, _mm512_set1_epi32(1));
    __m512i cycles = _mm512_srli_epi32(first, 3);
    cycles = _mm512_mask_or_epi32(cycles, two, cycles, _mm512_slli_epi32(_mm512_srli_epi32(second, 1), 5));
    cycles = _mm512_mask_or_epi32(cycles, three, cycles, _mm512_slli_epi32(_mm512_srli_epi32(third, 1), 12));
    _mm512_storeu_pd(out + from, _mm512_cvtepi32_pd(_mm512_castsi512_si256(cycles)));
    _mm512_storeu_pd(out + from + 8, _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(cycles, 1)));
  }
}

PT_INLINE_AVX512 void store_extents(std::uint64_t base, __m512i firsts, __m512i lasts, unsigned count,
                                    Extent* out) noexcept {
  alignas(64) std::array<std::uint8_t, 64> first;
  alignas(64) std::array<std::uint8_t, 64> last;
  _mm512_store_si512(first.data(), firsts);
  _mm512_store_si512(last.data(), lasts);
  const __m512i origin = _mm512_set1_epi64(static_cast<long long>(base));
  const __m512i low = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
  const __m512i high = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
  for (unsigned from = 0; from < count; from += 8) {
    const __m512i one = _mm512_add_epi64(
        origin, _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(first.data() + from))));
    const __m512i other = _mm512_add_epi64(
        origin, _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(last.data() + from))));
    _mm512_storeu_si512(out + from, _mm512_permutex2var_epi64(one, low, other));
    _mm512_storeu_si512(out + from + 4, _mm512_permutex2var_epi64(one, high, other));
  }
}

}  // namespace

// Masks of the packets that have the time of a preceding CYC, for all packets of a row.
struct FrameReader::Attached {
  std::uint64_t lanes;     // packets with the time of a preceding CYC
  std::uint64_t ends;      // the last packet of each such group
  std::uint64_t in_cycle;  // the next packet is in the cycle of the CYC
};

template <typename Row>
FrameReader::Attached FrameReader::attached_in(const Row& row) const noexcept {
  const bool packets_time = tnt_time_ == TntTime::PACKET;
  const std::uint64_t eligible = row.tnt | row.ip | row.fup;
  const std::uint64_t go_on = row.fup | (packets_time ? row.tnt & row.partial : 0);
  std::uint64_t lanes = eligible & (row.cyc << 1 | (follow_ != Follow::NOTHING ? 1U : 0U));
  for (std::uint64_t more = lanes; more != 0;) {
    more = eligible & ~lanes & (more & go_on) << 1;
    lanes |= more;
  }
  return {lanes, (row.cyc | lanes) & ~(lanes >> 1), row.cyc | (lanes & go_on)};
}

// Adds the points of a row of packets that begins in the block at `at`.
template <typename Row>
PT_INLINE_AVX512 void FrameReader::add_row(const Row& row, std::uint64_t at, Frame& frame) {
  const bool packets_time = tnt_time_ == TntTime::PACKET;
  const auto tnt_flag = packets_time ? std::uint8_t{0} : std::uint8_t{Cycles::BEFORE_TNT};
  const std::uint8_t* const bytes = decoder_.stream().data() + at;
  Cycles& cycles = frame.cycles;
  const std::size_t size = cycles.size;
  const Attached attached = attached_in(row);
  alignas(64) std::array<std::uint8_t, 64> starts;
  _mm512_store_si512(starts.data(), row.starts);
  std::uint64_t ends = attached.ends;
  if ((attached.lanes & 1) != 0) {  // packets of the last CYC before this block
    const auto end = static_cast<unsigned>(std::countr_zero(ends));
    cycles.extent[size - 1].last = at + starts[end];
    if ((row.tnt >> end & 1) != 0) cycles.flags[size - 1] |= tnt_flag;
    ends &= ends - 1;
  }
  const auto count = static_cast<unsigned>(std::popcount(row.cyc));
  if (count != 0) {
    const __m512i firsts = _mm512_maskz_compress_epi8(row.cyc, row.starts);
    store_cycles(bytes, firsts, count, cycles.weight.data() + size);
    store_extents(at, firsts, _mm512_maskz_compress_epi8(ends, row.starts), count,
                  cycles.extent.data() + size);
    _mm512_storeu_si512(cycles.ratio.data() + size, _mm512_set1_epi8(static_cast<char>(ratio_)));
    _mm512_storeu_si512(cycles.flags.data() + size,
                        _mm512_maskz_set1_epi8(_pext_u64(row.tnt, ends), static_cast<char>(tnt_flag)));
  }
  const bool joins = after_cyc_ || (packets_time && follow_ == Follow::REST);
  const std::uint64_t joined = (packets_time ? attached.in_cycle : row.cyc) << 1 | (joins ? 1U : 0U);
  for (std::uint64_t mtc = row.mtc; mtc != 0; mtc &= mtc - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mtc));
    cycles.size = size + static_cast<std::size_t>(std::popcount(row.cyc & ((std::uint64_t{1} << lane) - 1)));
    push_mtc(at + starts[lane], bytes[starts[lane] + 1], (joined >> lane & 1) != 0, frame);
  }
  cycles.size = size + count;
  const std::uint64_t last = std::uint64_t{1} << (row.count - 1);
  after_cyc_ = (row.cyc & last) != 0;
  follow_ = after_cyc_ ? Follow::FIRST : (attached.in_cycle & last) != 0 ? Follow::REST : Follow::NOTHING;
}

PT_TARGET_AVX512 std::uint64_t FrameReader::scan_blocks(std::uint64_t at, std::uint64_t end, Frame& frame) {
  const scan::BlockConstants with = scan::block_constants(decoder_.errata().skd007);
  const scan::HotConstants hot_with = scan::hot_constants();
  Cycles& cycles = frame.cycles;
  const std::size_t size_before = cycles.size;
  __m512i entry = _mm512_setzero_si512();
  std::uint64_t special = 0;
  while (special == 0 && at + kBlockBytes <= end && frame.points() + 2 * kMostPoints < kMaxPoints) {
    if (follow_ == Follow::NOTHING && is_tnt_from(decoder_.stream().data() + at, scan::offset_of(entry))) {
      entry = _mm512_setzero_si512();
      at += 64;
      continue;
    }
    cycles.reserve(2 * kMostPoints);
    const scan::Block block = scan::resolve_block(decoder_.stream().data() + at, with, entry);
    const __mmask64 inside = block.chain.inside;
    const __m512i hot =
        _mm512_maskz_permutexvar_epi8(inside, block.chain.starts, scan::hot_bits(block, hot_with));
    special = _mm512_mask_testn_epi8_mask(inside, hot, hot);
    const __mmask64 plain = special == 0 ? inside : (special & (~special + 1)) - 1;
    const __mmask64 lanes = plain & ~lanes_of(hot, bit(PacketKind::PAD));
    if (lanes != 0) add_row(row_of(block, hot, lanes), at, frame);
    if (special != 0) {
      alignas(64) std::array<std::uint8_t, 64> starts;
      _mm512_store_si512(starts.data(), block.chain.starts);
      at += starts[static_cast<unsigned>(std::countr_zero(special))];
    } else {
      at += 64;
    }
  }
  if (special == 0) at += scan::offset_of(entry);
  if (cycles.size != size_before) note_cycles(cycles);
  return at;
}

}  // namespace ptkit::time
#endif
