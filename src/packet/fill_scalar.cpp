#include <algorithm>

#include "packet/scan_kernels.h"

namespace ptkit::packet::scan {
std::size_t fill_scalar(base::Bytes stream, DecoderState& state, bool skd007, const PacketColumns& given,
                        std::size_t room, std::uint64_t limit) noexcept {
  const PacketColumns columns = given;  // a reference would be read again after each store of a byte
  if (stream.size() < kLeastBytes) return 0;
  const std::uint64_t last = std::min<std::uint64_t>(stream.size() - kLeastBytes, limit);
  std::size_t rows = 0;
  for (; rows < room && state.position <= last; ++rows) {
    Packet packet;
    packet.offset = state.position;
    if (read_hot(stream.data() + state.position, skd007, state, packet)) {
      state.in_psb = state.in_psb && continues_psb(packet.kind);
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
