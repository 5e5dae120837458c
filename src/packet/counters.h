// How many packets of each kind, and how many bytes they take.
#pragma once

#include <array>

#include "packet/packet.h"

namespace ptkit::packet {

struct PacketCounters {
  std::array<std::uint64_t, kPacketKinds> packets{};  // by kind; a PAD run counts as its length
  std::array<std::uint64_t, kPacketKinds> bytes{};
  std::uint64_t errors = 0;      // places where decoding failed
  std::uint64_t lost_bytes = 0;  // between such a place (or the beginning) and the next PSB

  void add(const Packet& packet) noexcept {
    const auto kind = static_cast<std::size_t>(packet.kind);
    packets[kind] += packet.kind == PacketKind::PAD ? packet.payload : 1;
    bytes[kind] += packet.size;
  }
};

// Counts the packets of a stream from its first PSB on.
[[nodiscard]] PacketCounters count_packets(base::Bytes stream) noexcept;

}  // namespace ptkit::packet
