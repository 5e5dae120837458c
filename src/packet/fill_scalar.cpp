#include <algorithm>

#include "packet/scan_kernels.h"

namespace ptkit::packet::scan {
namespace {

// Reads frequent packets without the decoder's tables of readers; false: not one of them, or a run of PADs that
// reaches the end. `at` has kLeastBytes readable bytes.
bool read_hot(const std::uint8_t* at, bool skd007, DecoderState& state, Packet& out) noexcept {
  const std::uint8_t byte = *at;
  const unsigned upper = byte >> 2;
  out.size = 1;
  if ((byte & 1) == 0) {
    if (byte <= 2) return false;
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

}  // namespace

std::size_t fill_scalar(base::Bytes stream, DecoderState& state, bool skd007, const PacketColumns& columns,
                        std::size_t room, std::uint64_t limit) noexcept {
  if (stream.size() < kLeastBytes) return 0;
  const std::uint64_t last = std::min<std::uint64_t>(stream.size() - kLeastBytes, limit);
  std::size_t rows = 0;
  for (; rows < room && state.position <= last; ++rows) {
    Packet packet;
    packet.offset = state.position;
    if (read_hot(stream.data() + state.position, skd007, state, packet)) {
      if (state.in_psb) packet.flags |= Packet::IN_PSB;
      state.position += packet.size;
    } else {
      PacketKind kind{};
      const std::uint8_t* const at = stream.data() + state.position;
      if (*at != 0 && !is_plain_special(at, kind)) break;
      PacketDecoder decoder(stream, state);
      static_cast<void>(decoder.next(packet));
      state = decoder.state();
    }
    columns.put(rows, packet);
  }
  return rows;
}

}  // namespace ptkit::packet::scan
