// Bytes that are no packets: a status with its offset, then resynchronisation.
#include <gtest/gtest.h>

#include "helpers.h"

namespace ptkit::packet::test {
namespace {

using base::Status;

struct Bad {
  const char* bytes;
  Status status;
  unsigned looked_at;
};

TEST(Errors, ReservedForms) {
  const Bad bad[] = {
      {"05 00 00", Status::BAD_OPCODE, 1},
      {"c9", Status::BAD_OPCODE, 1},
      {"02 04 00", Status::BAD_OPCODE, 2},
      {"02 02 82", Status::BAD_OPCODE, 2},
      {"02 c3 00 00", Status::BAD_OPCODE, 3},
      {"99 40", Status::BAD_PACKET, 2},  // reserved leaf
      {"99 ff", Status::BAD_PACKET, 2},
      {"02 a3 00 00 00 00 00 00", Status::BAD_PACKET, 8},  // no stop bit
      {"02 a3 01 00 00 00 00 00", Status::BAD_PACKET, 8},  // a stop bit and no branch
      {"ad 00 00 00 00 00 00 00 00", Status::BAD_IP_COMPRESSION, 1},
      {"f1 00 00 00 00 00 00 00 00", Status::BAD_IP_COMPRESSION, 1},
      {"02 73 00 00 01 00 00", Status::BAD_PACKET, 7},
      {"02 73 00 00 00 00 02", Status::BAD_PACKET, 7},
      {"02 52 00 00 00 00 00 00 00 00", Status::BAD_PACKET, 6},      // PayloadBytes 2
      {"ff ff ff ff ff ff ff ff ff 10", Status::BAD_PACKET, 10},     // CYC over 64 bits
      {"07 01 01 01 01 01 01 01 01 01 00", Status::BAD_PACKET, 11},  // CYC of 11 bytes
      {"02 82 02 82 02 82 02 82 02 82 02 82 02 82 02 23", Status::BAD_PACKET, 16},
      {"02 82 02 82 02 23", Status::BAD_PACKET, 6},
  };
  for (const Bad& row : bad) {
    SCOPED_TRACE(row.bytes);
    const Buffer bytes = bytes_of(std::string("00 ") + row.bytes);
    PacketDecoder decoder(bytes);
    Packet packet;
    ASSERT_EQ(decoder.next(packet), Status::OK);
    EXPECT_EQ(decoder.next(packet), row.status);
    EXPECT_EQ(packet.offset, 1u);
    EXPECT_EQ(packet.size, row.looked_at);
    EXPECT_EQ(decoder.position(), 1u);
  }
}

TEST(Errors, TruncationAtEveryByte) {
  RandomPackets random(4);
  for (std::size_t index = 0; index < kPacketKinds; ++index) {
    const auto kind = static_cast<PacketKind>(index);
    if (kind == PacketKind::INVALID || kind == PacketKind::PAD) continue;
    for (int turn = 0; turn < 50; ++turn) {
      Buffer bytes;
      ASSERT_EQ(encode(random.make(kind, turn % 2 != 0), bytes, turn % 2 != 0), Status::OK);
      const DecoderState state = kind == PacketKind::BIP ? open_block(turn % 2 != 0) : DecoderState{};
      for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
        const Buffer part(bytes.begin(),
                          bytes.begin() + static_cast<std::ptrdiff_t>(cut));  // its own buffer, for ASan
        PacketDecoder decoder(part, state);
        Packet packet;
        ASSERT_EQ(decoder.next(packet), Status::TRUNCATED_PACKET) << packet_name(kind) << " " << hex_of(part);
        ASSERT_EQ(packet.size, cut);
        ASSERT_EQ(decoder.position(), 0u);
        ASSERT_EQ(decoder.sync_forward(), Status::NO_SYNC);
        ASSERT_EQ(decoder.next(packet), Status::END_OF_STREAM);
      }
    }
  }
}

TEST(Errors, PositionAfterEnd) {
  const Buffer bytes = bytes_of("00");
  DecoderState state;
  state.position = 100;
  PacketDecoder decoder(bytes, state);
  Packet packet;
  EXPECT_EQ(decoder.next(packet), Status::END_OF_STREAM);
  EXPECT_EQ(decoder.sync_forward(), Status::NO_SYNC);
  EXPECT_EQ(PacketDecoder({}).sync_forward(), Status::NO_SYNC);
}

TEST(Resync, ContinuesAtNextPsb) {
  const Buffer stream = psb() + bytes_of("02 63 04 05") + psb() + bytes_of("0c");
  PacketDecoder decoder(stream);
  Packet packet;
  ASSERT_EQ(decoder.next(packet), Status::OK);
  ASSERT_EQ(decoder.next(packet), Status::OK);  // BBP
  ASSERT_EQ(decoder.next(packet), Status::BAD_OPCODE);
  ASSERT_EQ(decoder.sync_forward(), Status::OK);
  EXPECT_EQ(decoder.position(), 20u);
  EXPECT_FALSE(decoder.state().block_open);
  ASSERT_EQ(decoder.next(packet), Status::OK);
  ASSERT_EQ(decoder.next(packet), Status::OK);
  EXPECT_EQ(packet.kind, PacketKind::TNT_8);
}

TEST(Resync, FindsPsbOverlappedByBadPacket) {
  // A truncated MNT takes the first 8 bytes of the PSB for its payload; the rest is no packet.
  const Buffer stream = psb() + bytes_of("02 c3 88") + psb() + bytes_of("02 23");
  PacketDecoder decoder(stream);
  Packet packet;
  ASSERT_EQ(decoder.next(packet), Status::OK);
  ASSERT_EQ(decoder.next(packet), Status::OK);
  EXPECT_EQ(packet.kind, PacketKind::MNT);
  ASSERT_EQ(decoder.next(packet), Status::BAD_PACKET);
  ASSERT_EQ(decoder.sync_forward(), Status::OK);
  EXPECT_EQ(decoder.position(), 19u);
  ASSERT_EQ(decoder.next(packet), Status::OK);
  ASSERT_EQ(decoder.next(packet), Status::OK);
  EXPECT_EQ(packet.kind, PacketKind::PSBEND);
}

TEST(Resync, NeverReturnsToDecodedPsb) {
  const Buffer stream = psb() + bytes_of("05") + psb() + bytes_of("05");
  PacketDecoder decoder(stream);
  Packet packet;
  std::vector<std::uint64_t> positions;
  while (decoder.sync_forward() == Status::OK) {
    positions.push_back(decoder.position());
    ASSERT_EQ(decoder.next(packet), Status::OK);
    ASSERT_EQ(decoder.next(packet), Status::BAD_OPCODE);
  }
  EXPECT_EQ(positions, (std::vector<std::uint64_t>{0, 17}));
}

TEST(FindPsb, AtEveryOffset) {
  for (std::size_t before = 0; before < 40; ++before) {
    const Buffer stream = Buffer(before, 0x82) + psb() + Buffer(before % 7, 0x02);
    for (std::size_t from = 0; from <= stream.size() + 1; ++from) {
      EXPECT_EQ(find_psb(stream, from), from <= before ? before : stream.size());
    }
  }
  EXPECT_EQ(find_psb({}, 0), 0u);
  Buffer cut = psb();
  cut.pop_back();
  EXPECT_EQ(find_psb(cut, 0), cut.size());
}

TEST(FindPsb, CountsFromEndOfRun) {
  const Buffer tail = bytes_of("02 82 02 82 02 82");
  EXPECT_EQ(find_psb(tail + psb() + bytes_of("02 23"), 0), 6u);
  EXPECT_EQ(find_psb(psb() + psb(), 0), 0u);
  EXPECT_EQ(find_psb(psb() + psb(), 1), 16u);
  EXPECT_EQ(find_psb(tail + psb() + psb(), 0), 6u);
  EXPECT_EQ(find_psb(tail + psb() + psb(), 7), 22u);
}

TEST(RandomBytes, PositionsAdvanceWithinStream) {
  RandomPackets random(5);
  for (int turn = 0; turn < 300; ++turn) {
    Buffer bytes(random.bits(9));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.bits(8));
    PacketDecoder decoder(bytes, {}, turn % 2 != 0 ? errata_for({}) : Errata{});
    Packet packet;
    std::uint64_t end = 0;
    for (Status status = decoder.next(packet); status == Status::OK; status = decoder.next(packet)) {
      ASSERT_EQ(packet.offset, end);
      ASSERT_GT(packet.size, 0u);
      end += packet.size;
      ASSERT_EQ(decoder.position(), end);
    }
    ASSERT_LE(packet.offset + packet.size, bytes.size());
  }
}

}  // namespace
}  // namespace ptkit::packet::test
