// Encode, then decode: nothing changes. The encoder rejects fields that do not fit.
#include <gtest/gtest.h>

#include "helpers.h"

namespace ptkit::packet::test {
namespace {

using base::Status;

bool same_fields(const Packet& left, const Packet& right) {
  constexpr unsigned kEncoded = Packet::IP_BIT | Packet::NR | Packet::HW | Packet::MULT | Packet::ICNT;
  return left.kind == right.kind && left.payload == right.payload && left.payload2 == right.payload2 &&
         (left.flags & kEncoded) == (right.flags & kEncoded);
}

TEST(RoundTrip, EveryKind) {
  RandomPackets random(1);
  for (std::size_t index = 0; index < kPacketKinds; ++index) {
    const auto kind = static_cast<PacketKind>(index);
    if (kind == PacketKind::INVALID) continue;
    for (int turn = 0; turn < 2000; ++turn) {
      const bool items_4 = turn % 2 != 0;
      const Packet packet = random.make(kind, items_4);
      Buffer bytes;
      ASSERT_EQ(encode(packet, bytes, items_4), Status::OK) << packet_name(kind);
      PacketDecoder decoder(bytes, kind == PacketKind::BIP ? open_block(items_4) : DecoderState{});
      Packet decoded;
      ASSERT_EQ(decoder.next(decoded), Status::OK) << packet_name(kind) << " " << hex_of(bytes);
      ASSERT_TRUE(same_fields(packet, decoded)) << packet_name(kind) << " " << hex_of(bytes);
      ASSERT_EQ(decoded.size, bytes.size());
    }
  }
}

TEST(RoundTrip, WholeStreams) {
  RandomPackets random(2);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<Packet> packets;
    Buffer bytes = psb();
    bool block = false;
    bool items_4 = false;
    while (packets.size() < 200) {
      auto kind = static_cast<PacketKind>(random.bits(8) % (kPacketKinds - 1));
      if (kind == PacketKind::BIP && !block) continue;
      if (block && kind == PacketKind::TNT_8) continue;  // would read as a BIP, or close the block
      if (kind == PacketKind::PAD && !packets.empty() && packets.back().kind == kind) continue;  // one run
      const Packet packet = random.make(kind, items_4);
      ASSERT_EQ(encode(packet, bytes, items_4), Status::OK);
      packets.push_back(packet);
      if (kind == PacketKind::BBP) {
        block = true;
        items_4 = packet.payload2 != 0;
      } else if (block && kind != PacketKind::BIP) {
        // What keeps a block open is the decoder's affair here; begin with a closed one.
        bytes.push_back(0x02);
        bytes.push_back(0x33);
        packets.push_back(packet_of(PacketKind::BEP));
        block = items_4 = false;
      }
    }
    PacketDecoder decoder(bytes);
    Packet decoded;
    ASSERT_EQ(decoder.next(decoded), Status::OK);
    std::uint64_t end = decoded.size;
    for (const Packet& packet : packets) {
      ASSERT_EQ(decoder.next(decoded), Status::OK) << packet_name(packet.kind) << " at " << decoded.offset;
      ASSERT_TRUE(same_fields(packet, decoded)) << packet_name(packet.kind) << " at " << decoded.offset;
      ASSERT_EQ(decoded.offset, end);
      end += decoded.size;
    }
    ASSERT_EQ(decoder.next(decoded), Status::END_OF_STREAM);
    ASSERT_EQ(end, bytes.size());
  }
}

TEST(RoundTrip, CompressedIps) {
  RandomPackets random(3);
  Buffer bytes = psb();
  std::vector<std::uint64_t> ips;
  std::uint64_t last = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    std::uint64_t ip = random.bits(64);
    if (turn % 3 == 0) ip = last ^ random.bits(16);
    if (turn % 3 == 1) ip = last ^ random.bits(48);
    const CompressedIp compressed = compress_ip(ip, last, true);
    ASSERT_EQ(encode(packet_of(PacketKind::TIP, compressed.payload, compressed.ip_bytes), bytes), Status::OK);
    ips.push_back(ip);
    last = ip;
  }
  PacketDecoder decoder(bytes);
  Packet packet;
  ASSERT_EQ(decoder.next(packet), Status::OK);
  for (const std::uint64_t ip : ips) {
    ASSERT_EQ(decoder.next(packet), Status::OK);
    ASSERT_EQ(packet.ip, ip);
    ASSERT_TRUE(packet.flags & Packet::IP_KNOWN);
  }
}

TEST(CompressIp, TakesTheShortestForm) {
  EXPECT_EQ(compress_ip(0x401234, 0x405678, true).ip_bytes, 1);
  EXPECT_EQ(compress_ip(0x401234, 0x505678, true).ip_bytes, 2);
  EXPECT_EQ(compress_ip(0x7fff00401234, 0x505678, true).ip_bytes, 3);
  EXPECT_EQ(compress_ip(0xffffffff81000000, 0, true).ip_bytes, 3);
  EXPECT_EQ(compress_ip(0x1234567890abcdef, 0x1234000000000000, true).ip_bytes, 4);
  EXPECT_EQ(compress_ip(0x1234567890abcdef, 0, true).ip_bytes, 6);
  EXPECT_EQ(compress_ip(0x401234, 0x405678, false).ip_bytes, 3);
  EXPECT_EQ(compress_ip(0, 0, true).ip_bytes, 1);  // never 0: that means no IP
}

TEST(Encode, RejectsFieldsThatDoNotFit) {
  using K = PacketKind;
  const Packet bad[] = {
      packet_of(K::PAD, 0),
      packet_of(K::TNT_8, 0, 0),
      packet_of(K::TNT_8, 0, 7),
      packet_of(K::TNT_8, 8, 3),
      packet_of(K::TNT_64, 0, 48),
      packet_of(K::TIP, 1, 0),
      packet_of(K::TIP, 0x10000, 1),
      packet_of(K::FUP, std::uint64_t{1} << 48, 3),
      packet_of(K::FUP, 0, 8),
      packet_of(K::PIP, 0x10),
      packet_of(K::PIP, std::uint64_t{1} << 52),
      packet_of(K::VMCS, 0x800),
      packet_of(K::MODE_EXEC, 64, 2),
      packet_of(K::MODE_EXEC, 16, 8),
      packet_of(K::MODE_TSX, 4),
      packet_of(K::TSC, std::uint64_t{1} << 56),
      packet_of(K::MTC, 256),
      packet_of(K::TMA, 0, 512),
      packet_of(K::CBR, 256),
      packet_of(K::PTW, std::uint64_t{1} << 32, 0),
      packet_of(K::PTW, 0, 2),
      packet_of(K::MWAIT, 0, std::uint64_t{1} << 32),
      packet_of(K::PWRE, 256),
      packet_of(K::PWRX, 0, 16),
      packet_of(K::BBP, 32),
      packet_of(K::BIP, 32),
      packet_of(K::CFE, 0, 256),
      packet_of(K::EVD, 32),
      packet_of(K::TRIG, 0, 1),
      packet_of(K::INVALID),
      packet_of(static_cast<PacketKind>(77)),
  };
  for (const Packet& packet : bad) {
    Buffer bytes;
    EXPECT_EQ(encode(packet, bytes), Status::BAD_PACKET) << packet_name(packet.kind) << " " << packet.payload;
    EXPECT_TRUE(bytes.empty());
  }
  Buffer bytes;
  EXPECT_EQ(encode(packet_of(K::TIP, 0, 5), bytes), Status::BAD_IP_COMPRESSION);
  EXPECT_EQ(encode(packet_of(K::TIP, 0, 7), bytes), Status::BAD_IP_COMPRESSION);
  EXPECT_TRUE(bytes.empty());
}

}  // namespace
}  // namespace ptkit::packet::test
