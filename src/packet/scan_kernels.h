// Interface of the bulk kernels, with one set per instruction set. Private to this folder.
#pragma once

#include "base/cpu/target.h"
#include "packet/scan.h"
#include "packet/scan_tables.h"

namespace ptkit::packet::scan {

// Kernels stop before a packet for PacketDecoder, and when fewer bytes than this remain.
inline constexpr std::size_t kLeastBytes = 96;

// Input and progress of a counting kernel.
struct CountRun {
  std::uint64_t position = 0;  // offset of a packet outside of a block
  std::uint64_t limit = 0;     // stop soon after this
  // offset of a packet: the packets from there to the position determine the last IP and in_psb
  std::uint64_t checkpoint = 0;
  bool skd007 = false;
};

using CountKernel = void (*)(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept;

void count_scalar(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept;
#if PT_SIMD_X86
void count_avx512(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept;
#endif

// Fills rows from `state` on (no block is open, and the last IP is known) and advances it. Returns the number
// of rows. A run of PADs that may be incomplete is for PacketDecoder, too.
using FillKernel = std::size_t (*)(base::Bytes stream, DecoderState& state, bool skd007,
                                   const PacketColumns& columns, std::size_t room,
                                   std::uint64_t limit) noexcept;

std::size_t fill_scalar(base::Bytes stream, DecoderState& state, bool skd007, const PacketColumns& columns,
                        std::size_t room, std::uint64_t limit) noexcept;
#if PT_SIMD_X86
std::size_t fill_avx512(base::Bytes stream, DecoderState& state, bool skd007, const PacketColumns& columns,
                        std::size_t room, std::uint64_t limit) noexcept;
#endif

// Counts the special packet at `at`, unless it is for PacketDecoder.
[[nodiscard]] inline bool count_special(const std::uint8_t* at, std::uint64_t offset, CountRun& run,
                                        PacketCounts& counts) noexcept {
  PacketKind kind{};
  if (!is_plain_special(at, kind)) return false;
  ++counts.packets[static_cast<std::size_t>(kind)];
  if (kind == PacketKind::PSB) {
    run.checkpoint = offset;
  } else if (kind == PacketKind::TNT_64) {
    counts.tnt_bits += static_cast<unsigned>(std::bit_width(base::load_le<6>(at + 2))) - 1;
  }
  return true;
}

// SKD007's pattern in a CYC: an OVF instead of its second byte.
[[nodiscard]] inline bool is_damaged_cyc(const std::uint8_t* at) noexcept {
  return (at[0] & 4) != 0 && at[1] == 0x02 && at[2] == 0xf3;
}

// Reads a run of PADs. False: a long one.
[[nodiscard]] inline bool read_pads(const std::uint8_t* at, Packet& out) noexcept {
  const std::uint64_t low = base::load_le<8>(at);
  const std::uint64_t high = base::load_le<8>(at + 8);
  if (low == 0 && high == 0) return false;
  const int zeros = low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(high);
  out.kind = PacketKind::PAD;
  out.size = static_cast<std::uint32_t>(zeros) / 8;
  out.payload = out.size;
  return true;
}

// Reads frequent packets without the decoder's tables. False: another packet, or a long run of PADs. `at` has
// kLeastBytes readable bytes.
[[nodiscard]] inline bool read_hot(const std::uint8_t* at, bool skd007, DecoderState& state,
                                   Packet& out) noexcept {
  const std::uint8_t byte = *at;
  const unsigned upper = byte >> 2;
  out.size = 1;
  if ((byte & 1) == 0) {
    if (byte == 0) return read_pads(at, out);
    if (byte == 2) return false;
    out.kind = PacketKind::TNT_8;
    out.payload = kRowTables.tnt_payload[byte >> 1];
    out.payload2 = kTables.even_bits[upper];
    return true;
  }
  if ((byte & 2) != 0) {
    if (skd007 && is_damaged_cyc(at)) return false;
    out.kind = PacketKind::CYC;
    out.payload = byte >> 3;
    if ((byte & 4) == 0) return true;
    out.payload |= std::uint64_t{at[1]} >> 1 << 5;
    out.size = 2;
    if ((at[1] & 1) == 0) return true;
    out.payload |= std::uint64_t{at[2]} >> 1 << 12;
    out.size = 3;
    return (at[2] & 1) == 0;
  }
  if (kTables.odd_hot[upper] == 0) return false;
  out.kind = static_cast<PacketKind>(kRowTables.odd_kind[upper]);
  out.size = kTables.odd_length[upper];
  out.payload2 = kRowTables.odd_payload2[upper];
  out.flags = kRowTables.odd_flags[upper];
  const unsigned bytes = kRowTables.odd_bytes[upper];
  if (bytes == 0) return true;
  out.payload = base::load_le<8>(at + 1) & ~std::uint64_t{0} >> (64 - 8 * bytes);
  if (out.flags == 0) return true;
  const unsigned renewed = kRowTables.odd_new[upper];
  const std::uint64_t keep = renewed >= 64 ? 0 : ~std::uint64_t{0} << renewed;
  const std::uint64_t ip = (renewed & kSignExtended) != 0 ? base::sign_extend(out.payload, 48) : out.payload;
  out.ip = state.last_ip = ip | (state.last_ip & keep);
  return true;
}

}  // namespace ptkit::packet::scan
