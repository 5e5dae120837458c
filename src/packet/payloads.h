// The payload of each form, from its bytes and back. Internal to src/packet.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "packet/opcodes.h"

namespace ptkit::packet {

// At least the row's `least` bytes, from the opcode on.
struct PayloadSource {
  const PacketRow& row;
  base::Bytes bytes;
  bool items_4;  // the open block has items of 4 bytes
};

// The bytes of a packet of limited size under construction.
class PacketBytes {
 public:
  PacketBytes(const PacketRow& packet_row, bool block_items_4) noexcept
      : row(packet_row), items_4(block_items_4) {}
  void put(std::uint64_t value, std::size_t count) noexcept {
    for (std::size_t index = 0; index < count; ++index)
      bytes_[size_++] = static_cast<std::uint8_t>(value >> 8 * index);
  }
  // `bits` go to those bits of the last byte that the row's mask leaves open.
  void put_opcode(std::uint64_t bits = 0) noexcept {
    if (row.table == OpcodeTable::AFTER_02) put(0x02, 1);
    if (row.table == OpcodeTable::AFTER_02_C3) put(0xc302, 2);
    if (row.table == OpcodeTable::AFTER_99) put(0x99, 1);
    put(row.match | bits, 1);
  }
  void append_to(std::vector<std::uint8_t>& out) const {
    out.insert(out.end(), bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
  }

  const PacketRow& row;
  const bool items_4;

 private:
  static constexpr std::size_t kLongest = 16;
  std::array<std::uint8_t, kLongest> bytes_{};
  std::size_t size_ = 0;
};

inline base::Status truncated(base::Bytes bytes, Packet& out) noexcept {
  out.size = static_cast<std::uint32_t>(bytes.size());
  return base::Status::TRUNCATED_PACKET;
}

// Number of bytes that match the pattern 02 82 02 82 ...
inline std::size_t psb_prefix(base::Bytes bytes) noexcept {
  const std::size_t limit = std::min<std::size_t>(bytes.size(), 16);
  std::size_t length = 0;
  while (length < limit && bytes[length] == (length % 2 == 0 ? 0x02 : 0x82)) ++length;
  return length;
}

namespace payloads {

using base::load_le;
using base::Status;

constexpr bool fits(std::uint64_t value, unsigned bits) noexcept { return bits >= 64 || value >> bits == 0; }

constexpr std::uint64_t flag_bit(const Packet& packet, Packet::Flag flag, unsigned bit) noexcept {
  return (packet.flags & flag) != 0 ? std::uint64_t{1} << bit : 0;
}

// Moves bit 0 to bit 63 and so on.
constexpr std::uint64_t reverse_bits(std::uint64_t bits) noexcept {
  bits = (bits >> 1 & 0x5555555555555555) | (bits & 0x5555555555555555) << 1;
  bits = (bits >> 2 & 0x3333333333333333) | (bits & 0x3333333333333333) << 2;
  bits = (bits >> 4 & 0x0f0f0f0f0f0f0f0f) | (bits & 0x0f0f0f0f0f0f0f0f) << 4;
  bits = (bits >> 8 & 0x00ff00ff00ff00ff) | (bits & 0x00ff00ff00ff00ff) << 8;
  bits = (bits >> 16 & 0x0000ffff0000ffff) | (bits & 0x0000ffff0000ffff) << 16;
  return bits >> 32 | bits << 32;
}

// One form, named as in packets.def.
// read(): `out.size` is the row's `least` before; forms that may be longer check the bytes and raise it.
// write(): BAD_PACKET if a field does not fit.
template <PayloadKind kind>
struct Payload;

template <>
struct Payload<PayloadKind::EMPTY> {
  static Status read(const PayloadSource&, Packet&) noexcept { return Status::OK; }
  static Status write(const Packet&, PacketBytes& out) noexcept {
    if (out.row.table == OpcodeTable::NONE) return Status::BAD_PACKET;
    out.put_opcode();
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::PAD> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    const base::Bytes bytes = from.bytes;
    const std::size_t limit = std::min<std::size_t>(bytes.size(), std::numeric_limits<std::uint32_t>::max());
    std::size_t length = 1;
    while (length + 8 <= limit && load_le<8>(bytes.data() + length) == 0) length += 8;
    while (length < limit && bytes[length] == 0) ++length;
    out.payload = length;
    out.size = static_cast<std::uint32_t>(length);
    return Status::OK;
  }
  // Without a limit of size: see encode().
  static Status write(const Packet&, PacketBytes&) noexcept { return Status::BAD_PACKET; }
};

template <>
struct Payload<PayloadKind::PSB> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    constexpr std::uint64_t kHalf = 0x8202820282028202;
    const base::Bytes bytes = from.bytes;
    if (load_le<8>(bytes.data()) == kHalf && load_le<8>(bytes.data() + 8) == kHalf) return Status::OK;
    out.size = static_cast<std::uint32_t>(psb_prefix(bytes) + 1);
    return Status::BAD_PACKET;
  }
  static Status write(const Packet&, PacketBytes& out) noexcept {
    for (int pair = 0; pair < 8; ++pair) out.put(0x8202, 2);
    return Status::OK;
  }
};

// The highest set bit is the stop bit; the bit below it is the oldest branch.
inline Status read_tnt(std::uint64_t bits, Packet& out) noexcept {
  const auto count = static_cast<unsigned>(std::bit_width(bits));
  if (count < 2) return Status::BAD_PACKET;
  const std::uint64_t below = bits ^ std::uint64_t{1} << (count - 1);
  out.payload = reverse_bits(below) >> (65 - count);
  out.payload2 = count - 1;
  return Status::OK;
}

// The stop bit, then the oldest branch first.
constexpr std::uint64_t tnt_bits(const Packet& packet) noexcept {
  std::uint64_t bits = 1;
  for (unsigned bit = 0; bit < packet.payload2; ++bit) bits = bits << 1 | (packet.payload >> bit & 1);
  return bits;
}

constexpr bool tnt_fits(const Packet& packet, unsigned most) noexcept {
  const std::uint64_t count = packet.payload2;
  return count >= 1 && count <= most && fits(packet.payload, static_cast<unsigned>(count));
}

template <>
struct Payload<PayloadKind::TNT_8> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    return read_tnt(from.bytes[0] >> 1, out);
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!tnt_fits(packet, 6)) return Status::BAD_PACKET;
    out.put(tnt_bits(packet) << 1, 1);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::TNT_64> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    return read_tnt(load_le<6>(from.bytes.data() + 2), out);
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!tnt_fits(packet, 47)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(tnt_bits(packet), 6);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::IP> {
  static constexpr std::uint8_t kReserved = 0xff;
  static constexpr std::array<std::uint8_t, 8> kLengths = {0, 2, 4, 6, 6, kReserved, 8, kReserved};

  static Status read(const PayloadSource& from, Packet& out) noexcept {
    const base::Bytes bytes = from.bytes;
    const unsigned ip_bytes = bytes[0] >> 5;
    out.payload2 = ip_bytes;
    const std::size_t length = kLengths[ip_bytes];
    if (length == kReserved) return Status::BAD_IP_COMPRESSION;
    if (bytes.size() < 1 + length) return truncated(bytes, out);
    switch (length) {
      case 2:
        out.payload = load_le<2>(bytes.data() + 1);
        break;
      case 4:
        out.payload = load_le<4>(bytes.data() + 1);
        break;
      case 6:
        out.payload = load_le<6>(bytes.data() + 1);
        break;
      case 8:
        out.payload = load_le<8>(bytes.data() + 1);
        break;
      default:
        break;
    }
    out.size = static_cast<std::uint32_t>(1 + length);
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (packet.payload2 > 7) return Status::BAD_PACKET;
    const std::size_t length = kLengths[packet.payload2];
    if (length == kReserved) return Status::BAD_IP_COMPRESSION;
    if (!fits(packet.payload, static_cast<unsigned>(8 * length))) return Status::BAD_PACKET;
    out.put_opcode(packet.payload2 << 5);
    out.put(packet.payload, length);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::PIP> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    const std::uint64_t bits = load_le<6>(from.bytes.data() + 2);
    if (bits & 1) out.flags |= Packet::NR;
    out.payload = bits >> 1 << 5;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if ((packet.payload & 0x1f) != 0 || !fits(packet.payload, 52)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload >> 5 << 1 | flag_bit(packet, Packet::NR, 0), 6);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::VMCS> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    out.payload = load_le<5>(from.bytes.data() + 2) << 12;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if ((packet.payload & 0xfff) != 0 || !fits(packet.payload, 52)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload >> 12, 5);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::MODE_EXEC> {
  static constexpr std::array<std::uint8_t, 4> kWidths = {16, 64, 32, 0};  // by CS.L and CS.D

  static Status read(const PayloadSource& from, Packet& out) noexcept {
    out.payload2 = from.bytes[1] & 7;
    out.payload = kWidths[from.bytes[1] & 3];
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (packet.payload2 > 7 || packet.payload != kWidths[packet.payload2 & 3]) return Status::BAD_PACKET;
    out.put_opcode(packet.payload2);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::MODE_TSX> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    out.payload = from.bytes[1] & 3;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (packet.payload > 3) return Status::BAD_PACKET;
    out.put_opcode(packet.payload);
    return Status::OK;
  }
};

// All bytes after the opcode: 1, 7 or 8.
template <>
struct Payload<PayloadKind::WORD> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    const std::size_t opcode = opcode_bytes(from.row.table);
    const std::uint8_t* const at = from.bytes.data() + opcode;
    switch (out.size - opcode) {
      case 1:
        out.payload = *at;
        break;
      case 7:
        out.payload = load_le<7>(at);
        break;
      default:
        out.payload = load_le<8>(at);
        break;
    }
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    const std::size_t length = out.row.least - opcode_bytes(out.row.table);
    if (!fits(packet.payload, static_cast<unsigned>(8 * length))) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload, length);
    return Status::OK;
  }
};

// CTC[15:0], a reserved byte, FastCounter[8:0], 7 reserved bits.
template <>
struct Payload<PayloadKind::TMA> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    if (from.bytes[4] != 0 || (from.bytes[6] & 0xfe) != 0) return Status::BAD_PACKET;
    out.payload = load_le<2>(from.bytes.data() + 2);
    out.payload2 = load_le<2>(from.bytes.data() + 5);
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!fits(packet.payload, 16) || !fits(packet.payload2, 9)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload, 3);
    out.put(packet.payload2, 2);
    return Status::OK;
  }
};

// First byte: 5 bits, continuation in bit 2. Other bytes: 7 bits, continuation in bit 0.
template <>
struct Payload<PayloadKind::CYC> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    const base::Bytes bytes = from.bytes;
    std::uint64_t value = bytes[0] >> 3;
    std::size_t length = 1;
    bool more = (bytes[0] & 4) != 0;
    for (unsigned shift = 5; more; shift += 7) {
      if (length == bytes.size()) return truncated(bytes, out);
      const std::uint8_t byte = bytes[length++];
      const std::uint64_t bits = byte >> 1;
      out.size = static_cast<std::uint32_t>(length);
      if (shift >= 64 || bits << shift >> shift != bits) return Status::BAD_PACKET;
      value |= bits << shift;
      more = (byte & 1) != 0;
    }
    out.payload = value;
    out.size = static_cast<std::uint32_t>(length);
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    std::uint64_t rest = packet.payload >> 5;
    out.put((packet.payload & 0x1f) << 3 | (rest != 0 ? 4 : 0) | 3, 1);
    while (rest != 0) {
      const std::uint64_t bits = rest & 0x7f;
      rest >>= 7;
      out.put(bits << 1 | (rest != 0 ? 1 : 0), 1);
    }
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::CBR> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    out.payload = from.bytes[2];
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!fits(packet.payload, 8)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload, 2);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::PTW> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    const base::Bytes bytes = from.bytes;
    const unsigned payload_bytes = bytes[1] >> 5 & 3;
    out.payload2 = payload_bytes;
    if (bytes[1] & 0x80) out.flags |= Packet::IP_BIT;
    if (payload_bytes > 1) return Status::BAD_PACKET;
    if (payload_bytes == 0) {
      out.payload = load_le<4>(bytes.data() + 2);
      return Status::OK;
    }
    if (bytes.size() < 10) return truncated(bytes, out);
    out.payload = load_le<8>(bytes.data() + 2);
    out.size = 10;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (packet.payload2 > 1) return Status::BAD_PACKET;
    const std::size_t length = packet.payload2 == 0 ? 4 : 8;
    if (!fits(packet.payload, static_cast<unsigned>(8 * length))) return Status::BAD_PACKET;
    out.put_opcode(packet.payload2 << 5 | flag_bit(packet, Packet::IP_BIT, 7));
    out.put(packet.payload, length);
    return Status::OK;
  }
};

// Bit 7 of the second byte.
template <>
struct Payload<PayloadKind::IP_BIT> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    if (from.bytes[1] & 0x80) out.flags |= Packet::IP_BIT;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    out.put_opcode(flag_bit(packet, Packet::IP_BIT, 7));
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::MWAIT> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    out.payload = load_le<4>(from.bytes.data() + 2);
    out.payload2 = load_le<4>(from.bytes.data() + 6);
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!fits(packet.payload, 32) || !fits(packet.payload2, 32)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload, 4);
    out.put(packet.payload2, 4);
    return Status::OK;
  }
};

// The manual and perf have HW in bit 7, libipt in bit 3; the other one is reserved (zero) for each. Written
// is the bit that libipt reads, because libipt judges encoded streams.
template <>
struct Payload<PayloadKind::PWRE> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    if (from.bytes[2] & 0x88) out.flags |= Packet::HW;
    out.payload = from.bytes[3];
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!fits(packet.payload, 8)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(flag_bit(packet, Packet::HW, 3), 1);
    out.put(packet.payload, 1);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::PWRX> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    out.payload = from.bytes[2];
    out.payload2 = from.bytes[3] & 0xf;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!fits(packet.payload, 8) || !fits(packet.payload2, 4)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload, 1);
    out.put(packet.payload2, 4);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::BBP> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    out.payload = from.bytes[2] & 0x1f;
    out.payload2 = from.bytes[2] >> 7;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!fits(packet.payload, 5) || !fits(packet.payload2, 1)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload | packet.payload2 << 7, 1);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::BIP> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    const base::Bytes bytes = from.bytes;
    out.payload = bytes[0] >> 3;
    if (from.items_4) {
      out.payload2 = load_le<4>(bytes.data() + 1);
      return Status::OK;
    }
    if (bytes.size() < 9) return truncated(bytes, out);
    out.payload2 = load_le<8>(bytes.data() + 1);
    out.size = 9;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    const std::size_t length = out.items_4 ? 4 : 8;
    if (!fits(packet.payload, 5) || !fits(packet.payload2, static_cast<unsigned>(8 * length)))
      return Status::BAD_PACKET;
    out.put_opcode(packet.payload << 3);
    out.put(packet.payload2, length);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::CFE> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    if (from.bytes[2] & 0x80) out.flags |= Packet::IP_BIT;
    out.payload = from.bytes[2] & 0x1f;
    out.payload2 = from.bytes[3];
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!fits(packet.payload, 5) || !fits(packet.payload2, 8)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload | flag_bit(packet, Packet::IP_BIT, 7), 1);
    out.put(packet.payload2, 1);
    return Status::OK;
  }
};

template <>
struct Payload<PayloadKind::EVD> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    out.payload = from.bytes[2] & 0x1f;
    out.payload2 = load_le<8>(from.bytes.data() + 3);
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    if (!fits(packet.payload, 5)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(packet.payload, 1);
    out.put(packet.payload2, 8);
    return Status::OK;
  }
};

// Second byte: IP in bit 7, ICNTV in bit 6, MULT in bit 5; then TRBV; then ICNT if ICNTV.
template <>
struct Payload<PayloadKind::TRIG> {
  static Status read(const PayloadSource& from, Packet& out) noexcept {
    const base::Bytes bytes = from.bytes;
    if (bytes[1] & 0x80) out.flags |= Packet::IP_BIT;
    if (bytes[1] & 0x20) out.flags |= Packet::MULT;
    out.payload = bytes[2];
    if ((bytes[1] & 0x40) == 0) return Status::OK;
    if (bytes.size() < 5) return truncated(bytes, out);
    out.flags |= Packet::ICNT;
    out.payload2 = load_le<2>(bytes.data() + 3);
    out.size = 5;
    return Status::OK;
  }
  static Status write(const Packet& packet, PacketBytes& out) noexcept {
    const bool is_counted = (packet.flags & Packet::ICNT) != 0;
    if (!fits(packet.payload, 8) || !fits(packet.payload2, is_counted ? 16 : 0)) return Status::BAD_PACKET;
    out.put_opcode();
    out.put(flag_bit(packet, Packet::IP_BIT, 7) | flag_bit(packet, Packet::ICNT, 6) |
                flag_bit(packet, Packet::MULT, 5),
            1);
    out.put(packet.payload, 1);
    if (is_counted) out.put(packet.payload2, 2);
    return Status::OK;
  }
};

}  // namespace payloads

inline base::Status read_payload(const PayloadSource& from, Packet& out) noexcept {
  switch (from.row.payload) {
#define PT_PAYLOAD(kind)  \
  case PayloadKind::kind: \
    return payloads::Payload<PayloadKind::kind>::read(from, out);
#include "packet/packets.def"
  }
  return base::Status::BAD_PACKET;
}

inline base::Status write_payload(const Packet& packet, PacketBytes& out) noexcept {
  switch (out.row.payload) {
#define PT_PAYLOAD(kind)  \
  case PayloadKind::kind: \
    return payloads::Payload<PayloadKind::kind>::write(packet, out);
#include "packet/packets.def"
  }
  return base::Status::BAD_PACKET;
}

}  // namespace ptkit::packet
