// The bulk kernels, one set per instruction set. Not for other folders.
#pragma once

#include "packet/scan.h"
#include "packet/scan_tables.h"
#include "simd/target.h"

namespace ptkit::packet::scan {

// Kernels stop before a packet that they leave to PacketDecoder, and where less than this is left.
inline constexpr std::size_t kLeastBytes = 96;

// What a kernel that counts is given, and how far it came.
struct CountRun {
  std::uint64_t position = 0;    // of a packet, no block open
  std::uint64_t limit = 0;       // stop soon behind this
  std::uint64_t checkpoint = 0;  // of a packet: those from there to the position make the last IP
  bool in_psb = false;
  bool skd007 = false;
};

using CountKernel = void (*)(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept;

void count_scalar(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept;
#if PT_SIMD_X86
void count_avx512(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept;
#endif

// Fills rows from `state` on (no block open, the last IP known) and moves it; returns how many. A run of PADs
// that may not be whole is left to PacketDecoder, too.
using FillKernel = std::size_t (*)(base::Bytes stream, DecoderState& state, bool skd007,
                                   const PacketColumns& columns, std::size_t room,
                                   std::uint64_t limit) noexcept;

std::size_t fill_scalar(base::Bytes stream, DecoderState& state, bool skd007, const PacketColumns& columns,
                        std::size_t room, std::uint64_t limit) noexcept;
#if PT_SIMD_X86
std::size_t fill_avx512(base::Bytes stream, DecoderState& state, bool skd007, const PacketColumns& columns,
                        std::size_t room, std::uint64_t limit) noexcept;
#endif

// Counts the special packet at `at`, unless PacketDecoder has to look at it.
[[nodiscard]] inline bool count_special(const std::uint8_t* at, std::uint64_t offset, CountRun& run,
                                        PacketCounts& counts) noexcept {
  PacketKind kind{};
  if (!is_plain_special(at, kind)) return false;
  ++counts.packets[static_cast<std::size_t>(kind)];
  if (kind == PacketKind::PSB) {
    run.in_psb = true;
    run.checkpoint = offset;
  } else if (kind == PacketKind::PSBEND || kind == PacketKind::OVF) {
    run.in_psb = false;
  } else if (kind == PacketKind::TNT_64) {
    counts.tnt_bits += static_cast<unsigned>(std::bit_width(base::load_le<6>(at + 2))) - 1;
  }
  return true;
}

// SKD007's pattern, in a CYC: an OVF in the place of its second byte.
[[nodiscard]] inline bool is_damaged_cyc(const std::uint8_t* at) noexcept {
  return (at[0] & 4) != 0 && at[1] == 0x02 && at[2] == 0xf3;
}

}  // namespace ptkit::packet::scan
