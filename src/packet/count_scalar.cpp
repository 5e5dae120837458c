#include <algorithm>

#include "packet/scan_kernels.h"

namespace ptkit::packet::scan {
namespace {

// Length of the PAD run at `at`, which has at least one byte and ends before `end`.
std::size_t pad_run(const std::uint8_t* at, const std::uint8_t* end) noexcept {
  const std::uint8_t* const begin = at++;
  while (end - at >= 8) {
    const std::uint64_t word = base::load_le<8>(at);
    if (word != 0)
      return static_cast<std::size_t>(at - begin) + static_cast<unsigned>(std::countr_zero(word)) / 8;
    at += 8;
  }
  while (at < end && *at == 0) ++at;
  return static_cast<std::size_t>(at - begin);
}

}  // namespace

void count_scalar(base::Bytes stream, CountRun& run, PacketCounts& counts) noexcept {
  if (stream.size() < kLeastBytes) return;
  const std::uint8_t* const data = stream.data();
  const std::uint8_t* const end = data + stream.size();
  const std::uint8_t* const last = data + std::min<std::uint64_t>(stream.size() - kLeastBytes, run.limit);
  const std::uint8_t* at = data + run.position;
  const auto count = [&counts](PacketKind kind, std::uint64_t packets = 1) {
    counts.packets[static_cast<std::size_t>(kind)] += packets;
  };
  while (at <= last) {
    const std::uint8_t byte = *at;
    const unsigned upper = byte >> 2;
    if ((byte & 1) == 0) {
      if (byte == 0) {
        const std::size_t length = pad_run(at, end);
        count(PacketKind::PAD, length);
        at += length;
        continue;
      }
      if (byte != 2) {
        count(PacketKind::TNT_8);
        counts.tnt_bits += kTables.even_bits[upper];
        ++at;
        continue;
      }
    } else if ((byte & 2) == 0) {
      if (const std::uint8_t hot = kTables.odd_hot[upper]; hot != 0) {
        const auto offset = static_cast<std::uint64_t>(at - data);
        if (kTables.odd_renews[upper] != 0) run.checkpoint = offset;
        count(kHot[static_cast<std::size_t>(std::countr_zero(hot))]);
        at += kTables.odd_length[upper];
        continue;
      }
    } else if (!(run.skd007 && is_damaged_cyc(at))) {
      const unsigned length = (byte & 4) == 0 ? 1u : (at[1] & 1) == 0 ? 2u : (at[2] & 1) == 0 ? 3u : 0u;
      if (length != 0) {
        count(PacketKind::CYC);
        at += length;
        continue;
      }
    }
    const auto offset = static_cast<std::uint64_t>(at - data);
    if (!count_special(at, offset, run, counts)) break;
    at += special_length(at);
  }
  run.position = static_cast<std::uint64_t>(at - data);
}

}  // namespace ptkit::packet::scan
