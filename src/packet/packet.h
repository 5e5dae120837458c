// One packet, decoded. The kinds, their opcodes, payloads and texts come from packets.def.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::packet {

// Stored in the `kind` column: append only.
enum class PacketKind : std::uint8_t {
  PAD, PSB, PSBEND, TNT_8, TNT_64, TIP, TIP_PGE, TIP_PGD, FUP, PIP, VMCS, MODE_EXEC, MODE_TSX,
  TSC, MTC, TMA, CYC, CBR, OVF, TRACE_STOP, MNT, PTW, EXSTOP, MWAIT, PWRE, PWRX, BBP, BIP, BEP,
  CFE, EVD, TRIG,
};

// Payloads, by kind. "ip flag" etc. are bits of `flags`.
//   PAD       payload = run length in bytes (one Packet covers a whole run)
//   TNT_8/64  payload = bits, oldest in bit 0 (1 = taken); payload2 = number of bits
//   TIP*, FUP payload = raw IP bytes, zero-extended; payload2 = IPBytes field (0..7); `ip` = rebuilt IP, see IP_KNOWN
//   PIP       payload = CR3 (bits 51:5 of it, as a CR3 value); flags NR
//   VMCS      payload = VMCS base address (bits 51:12)
//   MODE_EXEC payload = address bits 16/32/64; payload2 = CS.L | CS.D << 1 | IF << 2
//   MODE_TSX  payload = InTX | TXAbort << 1
//   TSC       payload = low 56 bits;  MTC payload = CTC byte;  TMA payload = CTC (16 bits), payload2 = fast counter (9 bits)
//   CYC       payload = cycles;       CBR payload = core:bus ratio
//   MNT       payload = 64 bits;      PTW payload = value, payload2 = PayloadBytes field (0: 4, 1: 8); flags IP
//   EXSTOP    flags IP;               MWAIT payload = hints, payload2 = extensions
//   PWRE      payload = state << 4 | sub-state, flags HW;  PWRX payload = last << 4 | deepest, payload2 = wake reason bits (bit 0 interrupt, 2 store, 3 hardware)
//   BBP       payload = type, payload2 = SZ bit (1: 4-byte items, 0: 8-byte);  BIP payload = id, payload2 = value;  BEP flags IP
//   CFE       payload = type, payload2 = vector; flags IP;  EVD payload = type, payload2 = value
//   TRIG      payload = TRBV, payload2 = ICNT; flags IP, MULT, ICNT
struct Packet {
  enum Flag : std::uint8_t {
    IP_KNOWN = 1,  // `ip` is the whole, rebuilt IP
    IP_BIT = 2,    // the packet's IP bit: a FUP follows
    NR = 4,        // PIP: non-root
    HW = 8,        // PWRE: hardware-initiated
    MULT = 16,     // TRIG
    ICNT = 32,     // TRIG: payload2 is valid
    IN_PSB = 64,   // stands in a PSB+ header (between PSB and PSBEND)
  };
  std::uint64_t offset = 0;  // of the first byte, in the stream
  std::uint64_t payload = 0;
  std::uint64_t payload2 = 0;
  std::uint64_t ip = 0;
  std::uint32_t size = 0;  // bytes; a PAD run may be long
  PacketKind kind = PacketKind::PAD;
  std::uint8_t flags = 0;
};

[[nodiscard]] std::string_view packet_name(PacketKind kind) noexcept;  // the manual's name: "TIP.PGE"

}  // namespace ptkit::packet
