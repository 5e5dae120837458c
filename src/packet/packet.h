// One packet, decoded. The kinds, their opcodes, payloads and texts come from packets.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::packet {

// Stored in the `kind` column: append only.
enum class PacketKind : std::uint8_t {
#define PT_PACKET(kind, ...) kind,
#include "packet/packets.def"
};

inline constexpr std::size_t kPacketKinds = 0
#define PT_PACKET(...) +1
#include "packet/packets.def"
    ;

// packets.def documents `payload` and `payload2` of each kind.
struct Packet {
  enum Flag : std::uint8_t {
#define PT_PACKET_FLAG(name, value) name = value,
#include "packet/kinds.def"
  };
  std::uint64_t offset = 0;  // offset of the first byte in the stream
  std::uint64_t payload = 0;
  std::uint64_t payload2 = 0;
  std::uint64_t ip = 0;
  std::uint32_t size = 0;  // bytes; a PAD run may be long
  PacketKind kind = PacketKind::PAD;
  std::uint8_t flags = 0;
};

// The manual's name: "TIP.PGE".
[[nodiscard]] std::string_view packet_name(PacketKind kind) noexcept;
// The enumerator: "TIP_PGE".
[[nodiscard]] std::string_view packet_identifier(PacketKind kind) noexcept;
[[nodiscard]] std::string_view packet_text(PacketKind kind) noexcept;
// Description of `payload`; empty: none.
[[nodiscard]] std::string_view packet_payload_text(PacketKind kind) noexcept;
// Description of `payload2`; empty: none.
[[nodiscard]] std::string_view packet_payload2_text(PacketKind kind) noexcept;

// TIP, TIP.PGE, TIP.PGD, FUP.
[[nodiscard]] constexpr bool has_ip_payload(PacketKind kind) noexcept {
  return kind == PacketKind::TIP || kind == PacketKind::TIP_PGE || kind == PacketKind::TIP_PGD ||
         kind == PacketKind::FUP;
}

// False: the packet ends a PSB+.
[[nodiscard]] constexpr bool continues_psb(PacketKind kind) noexcept {
  enum : bool { ENDS, STAYS };
  switch (kind) {
#define PT_PACKET(kind, name, table, mask, match, claim, least, size, payload_kind, block, psb, ...) \
  case PacketKind::kind:                                                                             \
    return psb;
#include "packet/packets.def"
  }
  return false;
}

// What a packet shows where a FUP has to follow an OVF, as packets.def documents it.
enum class AfterOverflow : std::uint8_t { PASSES, ENABLED, NO_IP, IP_BIT, OTHER };
[[nodiscard]] constexpr AfterOverflow after_overflow(PacketKind kind) noexcept {
  switch (kind) {
#define PT_PACKET(kind, name, table, mask, match, claim, least, size, payload_kind, block, psb, ovf, ...) \
  case PacketKind::kind:                                                                                  \
    return AfterOverflow::ovf;
#include "packet/packets.def"
  }
  return AfterOverflow::OTHER;
}

}  // namespace ptkit::packet
