// Errata: which model has which, and those that damage packets themselves.
#include <gtest/gtest.h>

#include "helpers.h"

namespace ptkit::packet::test {
namespace {

using base::Status;

trace::Cpu cpu_of(std::uint16_t family, std::uint16_t model) {
  trace::Cpu cpu;
  cpu.known = true;
  cpu.family = family;
  cpu.model = model;
  return cpu;
}

Errata all_errata() {
  Errata all;
#define PT_ERRATUM(flag, ...) all.flag = true;
#include "packet/errata.def"
#undef PT_ERRATUM
  return all;
}

TEST(Errata, ByModel) {
  EXPECT_EQ(errata_for(cpu_of(6, 79)), (Errata{.bdm64 = true, .bdm70 = true}));
  EXPECT_EQ(errata_for(cpu_of(6, 92)), (Errata{.apl11 = true, .apl12 = true}));
  EXPECT_EQ(errata_for(cpu_of(6, 0x7a)), (Errata{.apl11 = true}));
  EXPECT_EQ(errata_for(cpu_of(6, 0x8f)), (Errata{.bdm70 = true, .skd022 = true, .skz84 = true}));
  EXPECT_EQ(errata_for(cpu_of(6, 0x97)), (Errata{.bdm70 = true, .skd022 = true, .apl11 = true}));
  EXPECT_EQ(errata_for(cpu_of(0x12, 1)), errata_for(cpu_of(6, 0x97)));
  EXPECT_EQ(errata_for(cpu_of(0x13, 1)), errata_for(cpu_of(6, 0x8f)));
  EXPECT_TRUE(errata_for(cpu_of(6, 78)).skl168);
  EXPECT_FALSE(errata_for(cpu_of(6, 85)).skl168);
  EXPECT_TRUE(errata_known(cpu_of(6, 78)));
}

TEST(Errata, UnknownCpuHasAll) {
  trace::Cpu amd = cpu_of(6, 79);
  amd.intel = false;
  for (const trace::Cpu& cpu : {trace::Cpu{}, cpu_of(0, 0), cpu_of(6, 0x3c), cpu_of(7, 0x4e), amd}) {
    EXPECT_FALSE(errata_known(cpu));
    EXPECT_EQ(errata_for(cpu), all_errata());
  }
}

std::vector<Packet> decode_all(const Buffer& bytes, const Errata& errata, Status* status = nullptr) {
  PacketDecoder decoder(bytes, {}, errata);
  std::vector<Packet> packets(1);
  Status last = Status::OK;
  while ((last = decoder.next(packets.back())) == Status::OK) packets.emplace_back();
  packets.pop_back();
  if (status != nullptr) *status = last;
  return packets;
}

// An OVF (02 f3) instead of all but the first byte of a CYC.
TEST(Skd007, OverflowInsideCyc) {
  const Buffer bytes = bytes_of("f7 02 f3 00");
  const auto with = decode_all(bytes, Errata{.skd007 = true});
  ASSERT_EQ(with.size(), 2u);
  EXPECT_EQ(with[0].kind, PacketKind::OVF);
  EXPECT_EQ(with[0].size, 3u);
  EXPECT_EQ(with[1].kind, PacketKind::PAD);
  const auto without = decode_all(bytes, Errata{});
  ASSERT_EQ(without.size(), 3u);
  EXPECT_EQ(without[0].kind, PacketKind::CYC);
  EXPECT_EQ(without[1].kind, PacketKind::CYC);
}

TEST(Skd007, KeepsOtherCycs) {
  for (const char* bytes : {"f7 04 f3", "f7 02 eb", "f7 02", "f7 03 00 f3", "f3 f3"}) {
    for (const Packet& packet : decode_all(bytes_of(bytes), Errata{.skd007 = true})) {
      EXPECT_EQ(packet.kind, PacketKind::CYC) << bytes;
    }
  }
}

TEST(Skz84, CorruptTmaAndItsStrayByte) {
  const Buffer bytes = bytes_of("02 73 01 01 01 01 00 c9 59 01");
  const auto with = decode_all(bytes, Errata{.skz84 = true});
  ASSERT_EQ(with.size(), 2u);
  EXPECT_EQ(with[0].kind, PacketKind::INVALID);
  EXPECT_EQ(with[0].size, 8u);
  EXPECT_EQ(with[1].kind, PacketKind::MTC);
  Status status = Status::OK;
  EXPECT_TRUE(decode_all(bytes, Errata{}, &status).empty());
  EXPECT_EQ(status, Status::BAD_PACKET);
  // At the end of the stream, without the extra byte; valid TMAs do not change.
  EXPECT_EQ(decode_all(bytes_of("02 73 01 01 01 01 00"), Errata{.skz84 = true})[0].size, 7u);
  EXPECT_EQ(decode_all(bytes_of("02 73 01 01 00 01 00"), Errata{.skz84 = true})[0].kind, PacketKind::TMA);
}

}  // namespace
}  // namespace ptkit::packet::test
