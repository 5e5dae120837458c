#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "packet/decoder.h"
#include "packet/encoder.h"

namespace ptkit::packet::test {

using Buffer = std::vector<std::uint8_t>;

// "02 82 f3" -> bytes.
inline Buffer bytes_of(const std::string& hex) {
  Buffer bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += hex[at] == ' ' ? 1u : 2u) {
    if (hex[at] != ' ')
      bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::string hex_of(const Buffer& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += (text.empty() ? "" : " ");
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

inline Buffer psb() { return bytes_of("02 82 02 82 02 82 02 82 02 82 02 82 02 82 02 82"); }

inline Buffer operator+(Buffer left, const Buffer& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

inline DecoderState open_block(bool items_4) {
  DecoderState state;
  state.block_open = true;
  state.block_items_4 = items_4;
  return state;
}

inline Packet packet_of(PacketKind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0,
                        unsigned flags = 0) {
  Packet packet;
  packet.kind = kind;
  packet.payload = payload;
  packet.payload2 = payload2;
  packet.flags = static_cast<std::uint8_t>(flags);
  return packet;
}

// A packet of this kind with random fields that its bytes can hold.
class RandomPackets {
 public:
  explicit RandomPackets(std::uint64_t seed) : random_(seed) {}

  Packet make(PacketKind kind, bool items_4) {
    Packet packet = packet_of(kind);
    fill(packet, items_4);
    return packet;
  }

  std::uint64_t bits(unsigned count) {
    if (count == 0) return 0;
    // Small, large and plain values alike.
    const std::uint64_t value = random_() >> (random_() % 64);
    return count >= 64 ? value : value & ((std::uint64_t{1} << count) - 1);
  }

 private:
  void flag(Packet& packet, Packet::Flag flag) {
    if (bits(8) & 1) packet.flags |= flag;
  }

  void fill(Packet& packet, bool items_4) {
    switch (packet.kind) {
      case PacketKind::PAD:
        packet.payload = 1 + bits(7);
        break;
      case PacketKind::TNT_8:
        packet.payload2 = 1 + random_() % 6;
        packet.payload = bits(static_cast<unsigned>(packet.payload2));
        break;
      case PacketKind::TNT_64:
        packet.payload2 = 1 + random_() % 47;
        packet.payload = bits(static_cast<unsigned>(packet.payload2));
        break;
      case PacketKind::TIP:
      case PacketKind::TIP_PGE:
      case PacketKind::TIP_PGD:
      case PacketKind::FUP: {
        constexpr unsigned kBits[6][2] = {{0, 0}, {1, 16}, {2, 32}, {3, 48}, {4, 48}, {6, 64}};
        const auto& form = kBits[random_() % 6];
        packet.payload2 = form[0];
        packet.payload = bits(form[1]);
        break;
      }
      case PacketKind::PIP:
        packet.payload = bits(47) << 5;
        flag(packet, Packet::NR);
        break;
      case PacketKind::VMCS:
        packet.payload = bits(40) << 12;
        break;
      case PacketKind::MODE_EXEC: {
        constexpr std::uint64_t kWidths[4] = {16, 64, 32, 0};
        packet.payload2 = bits(3);
        packet.payload = kWidths[packet.payload2 & 3];
        break;
      }
      case PacketKind::MODE_TSX:
        packet.payload = bits(2);
        break;
      case PacketKind::TSC:
        packet.payload = bits(56);
        break;
      case PacketKind::MTC:
      case PacketKind::CBR:
        packet.payload = bits(8);
        break;
      case PacketKind::TMA:
        packet.payload = bits(16);
        packet.payload2 = bits(9);
        break;
      case PacketKind::CYC:
      case PacketKind::MNT:
        packet.payload = bits(64);
        break;
      case PacketKind::PTW:
        packet.payload2 = bits(1);
        packet.payload = bits(packet.payload2 == 0 ? 32 : 64);
        flag(packet, Packet::IP_BIT);
        break;
      case PacketKind::EXSTOP:
      case PacketKind::BEP:
        flag(packet, Packet::IP_BIT);
        break;
      case PacketKind::MWAIT:
        packet.payload = bits(32);
        packet.payload2 = bits(32);
        break;
      case PacketKind::PWRE:
        packet.payload = bits(8);
        flag(packet, Packet::HW);
        break;
      case PacketKind::PWRX:
        packet.payload = bits(8);
        packet.payload2 = bits(4);
        break;
      case PacketKind::BBP:
        packet.payload = bits(5);
        packet.payload2 = bits(1);
        break;
      case PacketKind::BIP:
        packet.payload = bits(5);
        packet.payload2 = bits(items_4 ? 32 : 64);
        break;
      case PacketKind::CFE:
        packet.payload = bits(5);
        packet.payload2 = bits(8);
        flag(packet, Packet::IP_BIT);
        break;
      case PacketKind::EVD:
        packet.payload = bits(5);
        packet.payload2 = bits(64);
        break;
      case PacketKind::TRIG:
        packet.payload = bits(8);
        flag(packet, Packet::IP_BIT);
        flag(packet, Packet::MULT);
        flag(packet, Packet::ICNT);
        if (packet.flags & Packet::ICNT) packet.payload2 = bits(16);
        break;
      default:  // no fields
        break;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace ptkit::packet::test
