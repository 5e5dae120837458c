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
#define PT_ESCAPE(table, byte, next)
#include "packet/packets.def"
#undef PT_PACKET
#undef PT_ESCAPE
};

inline constexpr std::size_t kPacketKinds = 0
#define PT_PACKET(...) +1
#define PT_ESCAPE(table, byte, next)
#include "packet/packets.def"
#undef PT_PACKET
#undef PT_ESCAPE
    ;

// packets.def documents `payload` and `payload2` of each kind.
struct Packet {
  enum Flag : std::uint8_t {
    IP_KNOWN = 1,  // `ip` is the complete, rebuilt IP
    IP_BIT = 2,    // the packet's IP bit (PTW, EXSTOP, BEP, CFE, TRIG): a FUP follows
    NR = 4,        // PIP: non-root
    HW = 8,        // PWRE: hardware-initiated
    MULT = 16,     // TRIG: more than one trigger event
    ICNT = 32,     // TRIG: payload2 is valid
    IN_PSB = 64,   // in a PSB+: after PSB, up to PSBEND or a packet that cannot be in it
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

// False: the packet ends a PSB+. PSBEND and OVF do so by the manual; any other one shows that the PSBEND is
// missing.
[[nodiscard]] constexpr bool continues_psb(PacketKind kind) noexcept {
  switch (kind) {
    case PacketKind::PAD:
    case PacketKind::PSB:
    case PacketKind::FUP:
    case PacketKind::PIP:
    case PacketKind::VMCS:
    case PacketKind::MODE_EXEC:
    case PacketKind::MODE_TSX:
    case PacketKind::TSC:
    case PacketKind::MTC:
    case PacketKind::TMA:
    case PacketKind::CYC:
    case PacketKind::CBR:
    case PacketKind::MNT:
    case PacketKind::INVALID:
      return true;
    default:
      return false;
  }
}

}  // namespace ptkit::packet
