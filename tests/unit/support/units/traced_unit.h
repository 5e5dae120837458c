// A unit with its output, decoded by the packet decoder.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "packet/decoder.h"
#include "trace_unit/generator/packet_generator.h"

namespace ptkit::trace_unit::generator::test {

using packet::Packet;
using packet::PacketKind;

// All packets of a stream; a packet that cannot be decoded fails the test.
inline std::vector<Packet> decode(const std::vector<std::uint8_t>& bytes) {
  std::vector<Packet> packets;
  packet::PacketDecoder decoder{base::Bytes(bytes)};
  Packet packet;
  base::Status status = base::Status::OK;
  while ((status = decoder.next(packet)) == base::Status::OK) packets.push_back(packet);
  EXPECT_EQ(status, base::Status::END_OF_STREAM) << "at " << packet.offset;
  return packets;
}

struct Traced {
  explicit Traced(const GeneratorConfig& config)
      : unit(config, [this](base::Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); }) {}

  std::vector<Packet> packets() {
    unit.flush();
    EXPECT_EQ(unit.status(), base::Status::OK);
    EXPECT_EQ(unit.bytes_written(), bytes.size());
    return decode(bytes);
  }

  std::vector<std::uint8_t> bytes;
  PacketGenerator unit;
};

inline std::string text(const Packet& packet) {
  std::string out(packet::packet_name(packet.kind));
  const auto hex = [](std::uint64_t value) {
    char digits[20];
    std::snprintf(digits, sizeof digits, "%llx", static_cast<unsigned long long>(value));
    return std::string(digits);
  };
  switch (packet.kind) {
    case PacketKind::TIP:
    case PacketKind::TIP_PGE:
    case PacketKind::TIP_PGD:
    case PacketKind::FUP:
      return out.append(" ").append(packet.payload2 == 0 ? "-" : hex(packet.ip));
    case PacketKind::TNT_8:
    case PacketKind::TNT_64:
      out += ' ';
      for (std::uint64_t i = 0; i < packet.payload2; ++i) out += (packet.payload >> i & 1) != 0 ? '!' : '.';
      return out;
    case PacketKind::PSB:
    case PacketKind::PSBEND:
    case PacketKind::OVF:
    case PacketKind::TRACE_STOP:
      return out;
    default:
      break;
  }
  out.append(" ").append(hex(packet.payload));
  if (packet.payload2 != 0) out.append(",").append(hex(packet.payload2));
  if ((packet.flags & Packet::IP_BIT) != 0) out += " ip";
  if ((packet.flags & Packet::NR) != 0) out += " nr";
  if ((packet.flags & Packet::HW) != 0) out += " hw";
  return out;
}

// Packets as text, one per line, from the first one behind the first PSB+ on.
inline std::string after_start(const std::vector<Packet>& packets) {
  std::string out;
  bool begun = false;
  for (const Packet& packet : packets) {
    if (begun) out += text(packet) + "\n";
    begun = begun || packet.kind == PacketKind::PSBEND;
  }
  return out;
}

}  // namespace ptkit::trace_unit::generator::test
