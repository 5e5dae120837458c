#include "packet/encoder.h"

#include <limits>

#include "packet/payloads.h"

namespace ptkit::packet {

using base::Status;

Status encode(const Packet& packet, std::vector<std::uint8_t>& out, bool block_items_4) {
  if (static_cast<std::size_t>(packet.kind) >= kPacketKinds) return Status::BAD_PACKET;
  if (packet.kind == PacketKind::PAD) {
    if (packet.payload < 1 || packet.payload > std::numeric_limits<std::uint32_t>::max())
      return Status::BAD_PACKET;
    out.insert(out.end(), static_cast<std::size_t>(packet.payload), std::uint8_t{0});
    return Status::OK;
  }
  PacketBytes bytes(row_of(packet.kind), block_items_4);
  const Status status = write_payload(packet, bytes);
  if (status == Status::OK) bytes.append_to(out);
  return status;
}

CompressedIp compress_ip(std::uint64_t ip, std::uint64_t last_ip, bool last_ip_known) noexcept {
  constexpr std::uint64_t kLow48 = 0xffffffffffff;
  if (last_ip_known) {
    const std::uint64_t changed = ip ^ last_ip;
    if (changed >> 16 == 0) return {1, ip & 0xffff};
    if (changed >> 32 == 0) return {2, ip & 0xffffffff};
  }
  if (base::sign_extend(ip & kLow48, 48) == ip) return {3, ip & kLow48};
  if (last_ip_known && (ip ^ last_ip) >> 48 == 0) return {4, ip & kLow48};
  return {6, ip};
}

}  // namespace ptkit::packet
