#include <gtest/gtest.h>

#include "flow/libipt/decoder.h"
#include "flow/libipt/packets.h"
#include "packet/decoder.h"
#include "packet/encoder.h"
#include "unit/flow/libipt/support.h"

namespace ptkit {
namespace {

using packet::Packet;
using packet::PacketKind;
using test::StreamWriter;

Packet make(PacketKind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0, std::uint8_t flags = 0) {
  Packet result;
  result.kind = kind;
  result.payload = payload;
  result.payload2 = payload2;
  result.flags = flags;
  return result;
}

// Every packet kind that the installed libipt knows, some with all fields set.
std::vector<Packet> known_packets() {
  std::vector<Packet> packets = {
      make(PacketKind::PSB),
      make(PacketKind::TSC, 0x00123456789abcdeULL),
      make(PacketKind::CBR, 0x24),
      make(PacketKind::VMCS, 0x123456000),
      make(PacketKind::PIP, 0x1234560, 0, Packet::NR),
      make(PacketKind::MODE_EXEC, 64, 1),
      make(PacketKind::MODE_TSX, 1),
      make(PacketKind::FUP, 0x401234, 3),
      make(PacketKind::PSBEND),
      make(PacketKind::TMA, 0xabcd, 0x1ff),
      make(PacketKind::MTC, 0x5a),
      make(PacketKind::CYC, 3),
      make(PacketKind::CYC, 0x12345678),
      make(PacketKind::TNT_8, 0b101101, 6),
      make(PacketKind::TNT_64, 0x5555aaaa1234, 47),
      make(PacketKind::TIP, 0x1111, 1),
      make(PacketKind::TIP, 0x22222222, 2),
      make(PacketKind::TIP, 0x800000000000, 3),
      make(PacketKind::TIP, 0x123456789abc, 4),
      make(PacketKind::TIP_PGD, 0, 0),
      make(PacketKind::TIP_PGE, 0xffffffff81000000, 6),
      make(PacketKind::MNT, 0x1122334455667788),
      make(PacketKind::PTW, 0xdeadbeef, 0, Packet::IP_BIT),
      make(PacketKind::PTW, 0xdeadbeefcafef00d, 1),
      make(PacketKind::EXSTOP, 0, 0, Packet::IP_BIT),
      make(PacketKind::MWAIT, 0x11, 0x1),
      make(PacketKind::PWRE, 0x32, 0, Packet::HW),
      make(PacketKind::PWRX, 0x43, 0x8),
      make(PacketKind::TRACE_STOP),
      make(PacketKind::OVF),
  };
  if (flow::libipt::reference_header_version() >= 0x201) {
    packets.push_back(make(PacketKind::CFE, 1, 14, Packet::IP_BIT));
    packets.push_back(make(PacketKind::EVD, 0, 0x7fff12345678));
  }
  if (flow::libipt::reference_header_version() >= 0x202) {
    packets.push_back(make(PacketKind::TRIG, 3, 0x123, Packet::ICNT | Packet::MULT));
  }
  return packets;
}

void expect_equal(const Packet& ours, const Packet& theirs) {
  const std::string name(packet::packet_name(ours.kind));
  EXPECT_EQ(ours.kind, theirs.kind) << name;
  EXPECT_EQ(ours.offset, theirs.offset) << name;
  EXPECT_EQ(ours.size, theirs.size) << name;
  EXPECT_EQ(ours.payload, theirs.payload) << name;
  EXPECT_EQ(ours.payload2, theirs.payload2) << name;
  EXPECT_EQ(ours.flags, theirs.flags) << name;
  EXPECT_EQ(ours.ip, theirs.ip) << name;
}

TEST(ReferencePackets, EqualOurs) {
  std::vector<std::uint8_t> stream;
  for (const Packet& packet : known_packets()) {
    ASSERT_EQ(packet::encode(packet, stream), base::Status::OK) << packet::packet_name(packet.kind);
    stream.insert(stream.end(), stream.size() % 3, 0);  // runs of PAD in between
  }
  packet::PacketDecoder ours(stream);
  flow::libipt::ReferencePackets theirs(stream, {});
  Packet a;
  Packet b;
  for (;;) {
    const base::Status status = ours.next(a);
    ASSERT_EQ(theirs.next(b), status) << a.offset;
    if (status != base::Status::OK) break;
    expect_equal(a, b);
  }
  EXPECT_EQ(theirs.position(), stream.size());
}

TEST(ReferencePackets, StopsAtUnknownOpcodeAndSynchronises) {
  StreamWriter stream;
  stream.psb().bytes({0x02, 0xff, 0x00}).psb().psbend();
  flow::libipt::ReferencePackets packets(stream.data(), {});
  Packet packet;
  ASSERT_EQ(packets.next(packet), base::Status::OK);
  EXPECT_EQ(packets.next(packet), base::Status::BAD_OPCODE);
  EXPECT_EQ(packet.offset, 16U);
  ASSERT_EQ(packets.sync_forward(17), base::Status::OK);
  EXPECT_EQ(packets.position(), 19U);
  ASSERT_EQ(packets.next(packet), base::Status::OK);
  EXPECT_EQ(packet.kind, PacketKind::PSB);
  EXPECT_EQ(packets.sync_forward(20), base::Status::NO_SYNC);
  EXPECT_EQ(packets.next(packet), base::Status::END_OF_STREAM);
}

TEST(ReferencePackets, SkipsUnknownPackets) {
  StreamWriter stream;
  stream.psb().bytes({0x02, 0x63, 0x01}).bytes({0x02, 0x33}).psbend();  // BBP, BEP
  flow::libipt::ReferencePackets packets(stream.data(), {});
  Packet packet;
  ASSERT_EQ(packets.next(packet), base::Status::OK);
  EXPECT_EQ(packets.next(packet), base::Status::BAD_OPCODE);
  ASSERT_EQ(packets.set_position(21), base::Status::OK);
  ASSERT_EQ(packets.next(packet), base::Status::OK);
  EXPECT_EQ(packet.kind, PacketKind::PSBEND);
}

TEST(ReferencePackets, AcceptsEmptyStream) {
  flow::libipt::ReferencePackets packets({}, {});
  Packet packet;
  EXPECT_EQ(packets.next(packet), base::Status::END_OF_STREAM);
}

}  // namespace
}  // namespace ptkit
