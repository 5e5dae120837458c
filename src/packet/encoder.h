// Encodes packets into bytes: the inverse of the decoder.
#pragma once

#include <vector>

#include "packet/packet.h"

namespace ptkit::packet {

// Appends the packet's bytes. Uses kind, payload, payload2 and the flags IP_BIT, NR, HW, MULT, ICNT. Ignores
// offset, size, ip and IP_KNOWN: the caller chooses IPBytes in payload2 and the raw IP bytes in payload.
// BAD_PACKET if a field does not fit; then nothing is appended. CYC takes 1 to 10 bytes as its value needs.
// BIP needs the item size of the block: pass the SZ bit of the open BBP.
[[nodiscard]] base::Status encode(const Packet& packet, std::vector<std::uint8_t>& out,
                                  bool block_items_4 = false);

// The shortest IPBytes field from which a decoder with `last_ip` rebuilds `ip` (0 is never returned), and its
// raw bytes.
struct CompressedIp {
  std::uint8_t ip_bytes = 0;
  std::uint64_t payload = 0;
};
[[nodiscard]] CompressedIp compress_ip(std::uint64_t ip, std::uint64_t last_ip, bool last_ip_known) noexcept;

}  // namespace ptkit::packet
