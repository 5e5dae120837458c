// Every packet: its bytes by hand, decoded and encoded.
#include <gtest/gtest.h>

#include <set>

#include "helpers.h"

namespace ptkit::packet::test {
namespace {

struct Golden {
  const char* bytes;
  PacketKind kind;
  std::uint64_t payload;
  std::uint64_t payload2;
  unsigned flags;
  bool block = false;    // a BBP block is open
  bool items_4 = false;  // of 4-byte items
};

using K = PacketKind;

const Golden kGolden[] = {
    {"00", K::PAD, 1, 0, 0},
    {"00 00 00 00 00 00 00 00 00 00", K::PAD, 10, 0, 0},
    {"02 82 02 82 02 82 02 82 02 82 02 82 02 82 02 82", K::PSB, 0, 0, 0},
    {"02 23", K::PSBEND, 0, 0, 0},
    {"04", K::TNT_8, 0, 1, 0},       // 1 N
    {"06", K::TNT_8, 1, 1, 0},       // 1 T
    {"1a", K::TNT_8, 0b101, 3, 0},   // 1 T N T
    {"34", K::TNT_8, 0b0101, 4, 0},  // 1 T N T N: the oldest in bit 0
    {"fe", K::TNT_8, 0x3f, 6, 0},
    {"02 a3 02 00 00 00 00 00", K::TNT_64, 0, 1, 0},
    {"02 a3 0d 00 00 00 00 00", K::TNT_64, 0b101, 3, 0},
    {"02 a3 01 00 00 00 00 80", K::TNT_64, std::uint64_t{1} << 46, 47, 0},
    {"0d", K::TIP, 0, 0, 0},
    {"2d 34 12", K::TIP, 0x1234, 1, 0},
    {"4d 78 56 34 12", K::TIP, 0x12345678, 2, 0},
    {"6d 00 10 00 00 00 80", K::TIP, 0x800000001000, 3, 0},
    {"8d bc 9a 78 56 34 12", K::TIP, 0x123456789abc, 4, 0},
    {"cd f0 de bc 9a 78 56 34 12", K::TIP, 0x123456789abcdef0, 6, 0},
    {"11", K::TIP_PGE, 0, 0, 0},
    {"71 10 93 38 85 06 f8", K::TIP_PGE, 0xf80685389310, 3, 0},
    {"01", K::TIP_PGD, 0, 0, 0},
    {"21 ff ff", K::TIP_PGD, 0xffff, 1, 0},
    {"1d", K::FUP, 0, 0, 0},
    {"5d 01 00 00 80", K::FUP, 0x80000001, 2, 0},
    {"02 43 00 00 00 00 00 00", K::PIP, 0, 0, 0},
    {"02 43 fa fa 0a 00 00 00", K::PIP, 0xafafa0, 0, 0},
    {"02 43 ff ff ff ff ff ff", K::PIP, 0xfffffffffffe0, 0, Packet::NR},
    {"02 c8 cd ab 00 00 80", K::VMCS, 0x800000abcd000, 0, 0},
    {"99 00", K::MODE_EXEC, 16, 0, 0},
    {"99 01", K::MODE_EXEC, 64, 1, 0},
    {"99 02", K::MODE_EXEC, 32, 2, 0},
    {"99 03", K::MODE_EXEC, 0, 3, 0},
    {"99 05", K::MODE_EXEC, 64, 5, 0},
    {"99 20", K::MODE_TSX, 0, 0, 0},
    {"99 21", K::MODE_TSX, 1, 0, 0},
    {"99 22", K::MODE_TSX, 2, 0, 0},
    {"19 45 23 01 00 00 00 80", K::TSC, 0x80000000012345, 0, 0},
    {"59 94", K::MTC, 0x94, 0, 0},
    {"02 73 12 34 00 56 01", K::TMA, 0x3412, 0x156, 0},
    {"03", K::CYC, 0, 0, 0},
    {"fb", K::CYC, 31, 0, 0},
    {"07 02", K::CYC, 32, 0, 0},
    {"bf 04", K::CYC, 0x57, 0, 0},
    {"ff ff ff ff ff ff ff ff ff 0e", K::CYC, 0xffffffffffffffff, 0, 0},
    {"02 03 24 00", K::CBR, 0x24, 0, 0},
    {"02 f3", K::OVF, 0, 0, 0},
    {"02 83", K::TRACE_STOP, 0, 0, 0},
    {"02 c3 88 a1 b2 c3 d4 e5 42 22 2a", K::MNT, 0x2a2242e5d4c3b2a1, 0, 0},
    {"02 12 ef cd ab 90", K::PTW, 0x90abcdef, 0, 0},
    {"02 92 ef cd ab 90", K::PTW, 0x90abcdef, 0, Packet::IP_BIT},
    {"02 32 ef cd ab 90 78 56 34 12", K::PTW, 0x1234567890abcdef, 1, 0},
    {"02 b2 ef cd ab 90 78 56 34 12", K::PTW, 0x1234567890abcdef, 1, Packet::IP_BIT},
    {"02 62", K::EXSTOP, 0, 0, 0},
    {"02 e2", K::EXSTOP, 0, 0, Packet::IP_BIT},
    {"02 c2 0b 00 00 00 01 00 00 80", K::MWAIT, 0xb, 0x80000001, 0},
    {"02 22 00 5f", K::PWRE, 0x5f, 0, 0},
    {"02 22 08 0f", K::PWRE, 0x0f, 0, Packet::HW},
    {"02 a2 05 01 00 00 00", K::PWRX, 0x05, 1, 0},
    {"02 a2 36 08 00 00 00", K::PWRX, 0x36, 8, 0},
    {"02 63 81", K::BBP, 1, 1, 0},
    {"02 63 04", K::BBP, 4, 0, 0},
    {"04 01 02 03 04 05 06 07 08", K::BIP, 0, 0x0807060504030201, 0, true},
    {"fc 01 02 03 04 05 06 07 88", K::BIP, 31, 0x8807060504030201, 0, true},
    {"0c 78 56 34 12", K::BIP, 1, 0x12345678, 0, true, true},
    {"02 33", K::BEP, 0, 0, 0},
    {"02 b3", K::BEP, 0, 0, Packet::IP_BIT},
    {"02 13 01 0e", K::CFE, 1, 14, 0},
    {"02 13 83 00", K::CFE, 3, 0, Packet::IP_BIT},
    {"02 53 00 aa 0b f0 00 00 00 00 80", K::EVD, 0, 0x8000000000f00baa, 0},
    {"d9 20 a1", K::TRIG, 0xa1, 0, Packet::MULT},
    {"d9 80 a1", K::TRIG, 0xa1, 0, Packet::IP_BIT},
    {"d9 e0 a1 17 01", K::TRIG, 0xa1, 0x117, Packet::IP_BIT | Packet::MULT | Packet::ICNT},
};

DecoderState state_of(const Golden& golden) {
  return golden.block ? open_block(golden.items_4) : DecoderState{};
}

TEST(Packets, DecodeByHand) {
  for (const Golden& golden : kGolden) {
    SCOPED_TRACE(golden.bytes);
    const Buffer bytes = bytes_of(golden.bytes);
    PacketDecoder decoder(bytes, state_of(golden));
    Packet packet;
    ASSERT_EQ(decoder.next(packet), base::Status::OK);
    EXPECT_EQ(packet_name(packet.kind), packet_name(golden.kind));
    EXPECT_EQ(packet.payload, golden.payload);
    EXPECT_EQ(packet.payload2, golden.payload2);
    EXPECT_EQ(packet.flags & ~unsigned{Packet::IP_KNOWN}, golden.flags);
    EXPECT_EQ(packet.size, bytes.size());
    EXPECT_EQ(decoder.position(), bytes.size());
    EXPECT_EQ(decoder.next(packet), base::Status::END_OF_STREAM);
  }
}

TEST(Packets, EncodeByHand) {
  for (const Golden& golden : kGolden) {
    Buffer bytes;
    ASSERT_EQ(
        encode(packet_of(golden.kind, golden.payload, golden.payload2, golden.flags), bytes, golden.items_4),
        base::Status::OK)
        << golden.bytes;
    EXPECT_EQ(hex_of(bytes), golden.bytes);
  }
}

TEST(Packets, EveryKindIsCovered) {
  std::set<PacketKind> seen{K::INVALID};  // has no bytes of its own
  for (const Golden& golden : kGolden) seen.insert(golden.kind);
  EXPECT_EQ(seen.size(), kPacketKinds);
}

TEST(Packets, Names) {
  EXPECT_EQ(packet_name(K::TIP_PGE), "TIP.PGE");
  EXPECT_EQ(packet_identifier(K::TIP_PGE), "TIP_PGE");
  EXPECT_EQ(packet_name(K::TRACE_STOP), "TraceStop");
  EXPECT_EQ(packet_name(static_cast<PacketKind>(200)), "?");
  EXPECT_EQ(static_cast<int>(K::TRIG), 31);  // values are stored in files
  std::set<std::string_view> names;
  for (std::size_t kind = 0; kind < kPacketKinds; ++kind) {
    names.insert(packet_name(static_cast<PacketKind>(kind)));
    EXPECT_FALSE(packet_text(static_cast<PacketKind>(kind)).empty());
  }
  EXPECT_EQ(names.size(), kPacketKinds);
}

TEST(Packets, TipPgeThenPad) {
  const Buffer bytes = bytes_of("71 10 93 38 85 06 f8 00 00");
  PacketDecoder decoder(bytes);
  Packet packet;
  ASSERT_EQ(decoder.next(packet), base::Status::OK);
  EXPECT_EQ(packet.kind, K::TIP_PGE);
  EXPECT_EQ(packet.payload2, 3u);
  EXPECT_EQ(packet.size, 7u);
  EXPECT_EQ(packet.ip, 0xfffff80685389310);
  EXPECT_TRUE(packet.flags & Packet::IP_KNOWN);
  ASSERT_EQ(decoder.next(packet), base::Status::OK);
  EXPECT_EQ(packet.kind, K::PAD);
  EXPECT_EQ(packet.offset, 7u);
  EXPECT_EQ(packet.payload, 2u);
}

TEST(Packets, PwreHardwareBitOfTheManual) {
  const Buffer bytes = bytes_of("02 22 80 0f");
  PacketDecoder decoder(bytes);
  Packet packet;
  ASSERT_EQ(decoder.next(packet), base::Status::OK);
  EXPECT_EQ(packet.flags, Packet::HW);
}

TEST(LastIp, IsRebuiltAndResetByPsb) {
  struct Step {
    const char* bytes;
    std::uint64_t ip;
    bool known;
  };
  const Step steps[] = {
      {"2d 34 12", 0x1234, false},  // nothing is known of the upper bits yet
      {"cd f0 de bc 9a 78 56 34 12", 0x123456789abcdef0, true},
      {"2d ff ff", 0x123456789abcffff, true},
      {"0d", 0, false},  // suppressed: the last IP stays
      {"4d 01 00 00 00", 0x1234567800000001, true},
      {"8d 06 05 04 03 02 01", 0x1234010203040506, true},
      {"6d 00 00 00 00 00 80", 0xffff800000000000, true},
      {"02 82 02 82 02 82 02 82 02 82 02 82 02 82 02 82", 0, false},
      {"3d 78 56", 0x5678, true},  // against zero
  };
  Buffer stream;
  for (const Step& step : steps) stream = stream + bytes_of(step.bytes);
  PacketDecoder decoder(stream);
  for (const Step& step : steps) {
    SCOPED_TRACE(step.bytes);
    Packet packet;
    ASSERT_EQ(decoder.next(packet), base::Status::OK);
    EXPECT_EQ(packet.ip, step.ip);
    EXPECT_EQ((packet.flags & Packet::IP_KNOWN) != 0, step.known);
  }
}

TEST(PsbHeader, IsFlagged) {
  const Buffer stream =
      psb() + bytes_of("19 01 02 03 04 05 06 07 02 03 24 00 02 23 59 01") + psb() + bytes_of("02 f3 59 02");
  PacketDecoder decoder(stream);
  std::vector<bool> flagged;
  Packet packet;
  while (decoder.next(packet) == base::Status::OK) flagged.push_back((packet.flags & Packet::IN_PSB) != 0);
  // PSB TSC CBR PSBEND MTC PSB OVF MTC: an overflow ends the header, too.
  EXPECT_EQ(flagged, (std::vector<bool>{false, true, true, false, false, false, false, false}));
}

TEST(Blocks, BipOnlyWhileABlockIsOpen) {
  // TNT, BBP of 4-byte items, BIP, MTC, BIP, BEP with IP, FUP, TNT.
  const Buffer stream = bytes_of("0c 02 63 81 0c 01 00 00 00 59 07 14 02 00 00 00 02 b3 3d 10 00 0c");
  const PacketKind kinds[] = {K::TNT_8, K::BBP, K::BIP, K::MTC, K::BIP, K::BEP, K::FUP, K::TNT_8};
  PacketDecoder decoder(stream);
  for (const PacketKind kind : kinds) {
    Packet packet;
    ASSERT_EQ(decoder.next(packet), base::Status::OK);
    EXPECT_EQ(packet_name(packet.kind), packet_name(kind));
  }
}

TEST(Blocks, AreClosedByOtherPackets) {
  for (const char* closer : {"02 f3", "0d", "11", "01", "99 01", "06", "02 23", "02 12 00 00 00 00"}) {
    const Buffer stream = bytes_of("02 63 04") + bytes_of(closer) + bytes_of("0c");
    PacketDecoder decoder(stream);
    Packet packet;
    ASSERT_EQ(decoder.next(packet), base::Status::OK);
    ASSERT_EQ(decoder.next(packet), base::Status::OK);
    ASSERT_EQ(decoder.next(packet), base::Status::OK) << closer;
    EXPECT_EQ(packet.kind, K::TNT_8) << closer;
  }
  for (const char* keeper : {"00", "59 01", "03", "02 03 01 00", "1d", "02 62"}) {
    const Buffer stream = bytes_of("02 63 04") + bytes_of(keeper) + bytes_of("0c 01 02 03 04 05 06 07 08");
    PacketDecoder decoder(stream);
    Packet packet;
    ASSERT_EQ(decoder.next(packet), base::Status::OK);
    ASSERT_EQ(decoder.next(packet), base::Status::OK);
    ASSERT_EQ(decoder.next(packet), base::Status::OK) << keeper;
    EXPECT_EQ(packet.kind, K::BIP) << keeper;
  }
}

}  // namespace
}  // namespace ptkit::packet::test
