#include "packet/encoder.h"

#include <array>
#include <bit>

#include "packet/opcodes.h"

namespace ptkit::packet {
namespace {

using base::Status;

constexpr std::size_t kLongest = 16;

// The bytes of a fixed-size packet under construction.
class PacketBytes {
 public:
  void put(std::uint64_t value, std::size_t count) noexcept {
    for (std::size_t index = 0; index < count; ++index)
      bytes_[size_++] = static_cast<std::uint8_t>(value >> 8 * index);
  }
  void append_to(std::vector<std::uint8_t>& out) const {
    out.insert(out.end(), bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
  }

 private:
  std::array<std::uint8_t, kLongest> bytes_{};
  std::size_t size_ = 0;
};

constexpr bool fits(std::uint64_t value, unsigned bits) noexcept { return bits >= 64 || value >> bits == 0; }

constexpr std::uint64_t flag_bit(const Packet& packet, Packet::Flag flag, unsigned bit) noexcept {
  return (packet.flags & flag) != 0 ? std::uint64_t{1} << bit : 0;
}

// Appends the opcode bytes. `bits` go to those bits of the last byte that the row's mask leaves open.
void put_opcode(const PacketRow& row, std::uint64_t bits, PacketBytes& out) noexcept {
  if (row.table == OpcodeTable::AFTER_02) out.put(0x02, 1);
  if (row.table == OpcodeTable::AFTER_02_C3) out.put(0xc302, 2);
  if (row.table == OpcodeTable::AFTER_99) out.put(0x99, 1);
  out.put(row.match | bits, 1);
}

// Writers: payload to bytes, BAD_PACKET if a field does not fit.

Status write_tnt(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  const unsigned most = row.payload == PayloadKind::TNT_8 ? 6 : 47;
  const std::uint64_t count = packet.payload2;
  if (count < 1 || count > most || !fits(packet.payload, static_cast<unsigned>(count)))
    return Status::BAD_PACKET;
  std::uint64_t bits = 1;  // the stop bit, then the oldest branch first
  for (unsigned bit = 0; bit < count; ++bit) bits = bits << 1 | (packet.payload >> bit & 1);
  if (row.payload == PayloadKind::TNT_8) {
    out.put(bits << 1, 1);
  } else {
    put_opcode(row, 0, out);
    out.put(bits, 6);
  }
  return Status::OK;
}

Status write_ip(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  constexpr std::array<std::size_t, 8> kLengths = {0, 2, 4, 6, 6, 9, 8, 9};  // 9: reserved
  if (packet.payload2 > 7) return Status::BAD_PACKET;
  const std::size_t length = kLengths[packet.payload2];
  if (length == 9) return Status::BAD_IP_COMPRESSION;
  if (!fits(packet.payload, static_cast<unsigned>(8 * length))) return Status::BAD_PACKET;
  put_opcode(row, packet.payload2 << 5, out);
  out.put(packet.payload, length);
  return Status::OK;
}

Status write_pip(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if ((packet.payload & 0x1f) != 0 || !fits(packet.payload, 52)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload >> 5 << 1 | flag_bit(packet, Packet::NR, 0), 6);
  return Status::OK;
}

Status write_vmcs(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if ((packet.payload & 0xfff) != 0 || !fits(packet.payload, 52)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload >> 12, 5);
  return Status::OK;
}

Status write_mode_exec(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  constexpr std::array<std::uint64_t, 4> kWidths = {16, 64, 32, 0};
  if (packet.payload2 > 7 || packet.payload != kWidths[packet.payload2 & 3]) return Status::BAD_PACKET;
  put_opcode(row, packet.payload2, out);
  return Status::OK;
}

Status write_mode_tsx(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (packet.payload > 3) return Status::BAD_PACKET;
  put_opcode(row, packet.payload, out);
  return Status::OK;
}

Status write_word(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  const std::size_t length = row.least - opcode_bytes(row.table);
  if (!fits(packet.payload, static_cast<unsigned>(8 * length))) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload, length);
  return Status::OK;
}

Status write_tma(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (!fits(packet.payload, 16) || !fits(packet.payload2, 9)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload, 3);
  out.put(packet.payload2, 2);
  return Status::OK;
}

Status write_cyc(const Packet& packet, PacketBytes& out) noexcept {
  std::uint64_t rest = packet.payload >> 5;
  out.put((packet.payload & 0x1f) << 3 | (rest != 0 ? 4 : 0) | 3, 1);
  while (rest != 0) {
    const std::uint64_t bits = rest & 0x7f;
    rest >>= 7;
    out.put(bits << 1 | (rest != 0 ? 1 : 0), 1);
  }
  return Status::OK;
}

Status write_cbr(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (!fits(packet.payload, 8)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload, 2);
  return Status::OK;
}

Status write_ptw(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (packet.payload2 > 1) return Status::BAD_PACKET;
  const std::size_t length = packet.payload2 == 0 ? 4 : 8;
  if (!fits(packet.payload, static_cast<unsigned>(8 * length))) return Status::BAD_PACKET;
  put_opcode(row, packet.payload2 << 5 | flag_bit(packet, Packet::IP_BIT, 7), out);
  out.put(packet.payload, length);
  return Status::OK;
}

Status write_ip_bit(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  put_opcode(row, flag_bit(packet, Packet::IP_BIT, 7), out);
  return Status::OK;
}

Status write_mwait(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (!fits(packet.payload, 32) || !fits(packet.payload2, 32)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload, 4);
  out.put(packet.payload2, 4);
  return Status::OK;
}

// HW in the bit that libipt reads (see read_pwre in decoder.cpp), because libipt judges encoded streams.
Status write_pwre(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (!fits(packet.payload, 8)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(flag_bit(packet, Packet::HW, 3), 1);
  out.put(packet.payload, 1);
  return Status::OK;
}

Status write_pwrx(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (!fits(packet.payload, 8) || !fits(packet.payload2, 4)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload, 1);
  out.put(packet.payload2, 4);
  return Status::OK;
}

Status write_bbp(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (!fits(packet.payload, 5) || !fits(packet.payload2, 1)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload | packet.payload2 << 7, 1);
  return Status::OK;
}

Status write_bip(const Packet& packet, const PacketRow& row, bool items_4, PacketBytes& out) noexcept {
  const std::size_t length = items_4 ? 4 : 8;
  if (!fits(packet.payload, 5) || !fits(packet.payload2, static_cast<unsigned>(8 * length)))
    return Status::BAD_PACKET;
  put_opcode(row, packet.payload << 3, out);
  out.put(packet.payload2, length);
  return Status::OK;
}

Status write_cfe(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (!fits(packet.payload, 5) || !fits(packet.payload2, 8)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload | flag_bit(packet, Packet::IP_BIT, 7), 1);
  out.put(packet.payload2, 1);
  return Status::OK;
}

Status write_evd(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  if (!fits(packet.payload, 5)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(packet.payload, 1);
  out.put(packet.payload2, 8);
  return Status::OK;
}

Status write_trig(const Packet& packet, const PacketRow& row, PacketBytes& out) noexcept {
  const bool counted = (packet.flags & Packet::ICNT) != 0;
  if (!fits(packet.payload, 8) || !fits(packet.payload2, counted ? 16 : 0)) return Status::BAD_PACKET;
  put_opcode(row, 0, out);
  out.put(flag_bit(packet, Packet::IP_BIT, 7) | flag_bit(packet, Packet::ICNT, 6) |
              flag_bit(packet, Packet::MULT, 5),
          1);
  out.put(packet.payload, 1);
  if (counted) out.put(packet.payload2, 2);
  return Status::OK;
}

Status write_payload(const Packet& packet, const PacketRow& row, bool items_4, PacketBytes& out) noexcept {
  switch (row.payload) {
    case PayloadKind::EMPTY:
      if (row.table == OpcodeTable::NONE) return Status::BAD_PACKET;
      put_opcode(row, 0, out);
      return Status::OK;
    case PayloadKind::PAD:
      return Status::BAD_PACKET;  // without size limit: see encode()
    case PayloadKind::PSB:
      for (int pair = 0; pair < 8; ++pair) out.put(0x8202, 2);
      return Status::OK;
    case PayloadKind::TNT_8:
    case PayloadKind::TNT_64:
      return write_tnt(packet, row, out);
    case PayloadKind::IP:
      return write_ip(packet, row, out);
    case PayloadKind::PIP:
      return write_pip(packet, row, out);
    case PayloadKind::VMCS:
      return write_vmcs(packet, row, out);
    case PayloadKind::MODE_EXEC:
      return write_mode_exec(packet, row, out);
    case PayloadKind::MODE_TSX:
      return write_mode_tsx(packet, row, out);
    case PayloadKind::WORD:
      return write_word(packet, row, out);
    case PayloadKind::TMA:
      return write_tma(packet, row, out);
    case PayloadKind::CYC:
      return write_cyc(packet, out);
    case PayloadKind::CBR:
      return write_cbr(packet, row, out);
    case PayloadKind::PTW:
      return write_ptw(packet, row, out);
    case PayloadKind::IP_BIT:
      return write_ip_bit(packet, row, out);
    case PayloadKind::MWAIT:
      return write_mwait(packet, row, out);
    case PayloadKind::PWRE:
      return write_pwre(packet, row, out);
    case PayloadKind::PWRX:
      return write_pwrx(packet, row, out);
    case PayloadKind::BBP:
      return write_bbp(packet, row, out);
    case PayloadKind::BIP:
      return write_bip(packet, row, items_4, out);
    case PayloadKind::CFE:
      return write_cfe(packet, row, out);
    case PayloadKind::EVD:
      return write_evd(packet, row, out);
    case PayloadKind::TRIG:
      return write_trig(packet, row, out);
  }
  return Status::BAD_PACKET;
}

}  // namespace

Status encode(const Packet& packet, std::vector<std::uint8_t>& out, bool block_items_4) {
  if (static_cast<std::size_t>(packet.kind) >= kPacketKinds) return Status::BAD_PACKET;
  if (packet.kind == PacketKind::PAD) {
    if (packet.payload < 1 || !fits(packet.payload, 32)) return Status::BAD_PACKET;
    out.insert(out.end(), static_cast<std::size_t>(packet.payload), std::uint8_t{0});
    return Status::OK;
  }
  PacketBytes bytes;
  const Status status = write_payload(packet, row_of(packet.kind), block_items_4, bytes);
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
