// Streams that begin without a PSB (Configuration::sync): control flow begins at the first TIP.PGE or FUP
// with a full IP.
#include <gtest/gtest.h>

#include "unit/flow/all_decoders.h"

namespace ptkit::flow {
namespace {

using base::Status;

// 1000 nop; 1001 jz 1004; 1003 nop; 1004 jmp rax
const std::vector<std::uint8_t> kProgram = {0x90, 0x74, 0x01, 0x90, 0xff, 0xe0};

struct NoPsb : testing::Test {
  NoPsb() : scene(kProgram) { scene.configuration.sync = false; }
  // TIP.PGE with the two low bytes.
  Scene& short_pge(std::uint64_t ip) { return scene.add(PacketKind::TIP_PGE, ip & 0xffff, 1); }
  Scene scene;
};

TEST_F(NoPsb, RegionIsWhole) {
  scene.add(PacketKind::CBR, 20).mode(64).pge(0x1000).tnt("n").end(0x1004);
  scene.mode(64);
  short_pge(0x1003).end(0x1004);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_TRUE(rows.gaps.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1003, 0x1003}));
  scene.configuration.sync = true;
  const Collect refused = scene.decode();
  ASSERT_EQ(refused.errors.size(), 1U);
  EXPECT_EQ(refused.errors[0].code, Status::NO_SYNC);
}

TEST_F(NoPsb, ModeOfTheRegionCounts) {
  Scene narrow({0x40, 0xff, 0xe0});  // 32 bits: inc eax; jmp eax
  narrow.configuration.sync = false;
  const Collect rows = narrow.mode(32).pge(0x1000).end(0x1001).decode();
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000}));
}

TEST_F(NoPsb, BeginsAtFirstFullIp) {
  // The end of a packet; TNT, TIPs and a TIP.PGE that nothing gives an IP.
  scene.raw({0x02, 0xff, 0x07}).tnt("tnt").add(PacketKind::TIP, 0x1004, 1).add(PacketKind::TIP_PGD, 0, 0);
  short_pge(0x1000).tnt("t").tip(0x1000).add(PacketKind::TIP_PGD, 0, 0);
  scene.pge(0x1000).tnt("n").end(0x1004);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1003}));
  ASSERT_FALSE(rows.gaps.empty());
  EXPECT_EQ(rows.gaps[0].cause, GapCause::START);
  EXPECT_EQ(rows.gaps[0].begin, 0U);
}

TEST_F(NoPsb, BeginsAtFup) {
  scene.tnt("ttt").fup(0x1003).tip(0x1000).tnt("n").end(0x1004);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1003}));
  ASSERT_EQ(rows.branches.size(), 3U) << rows.log;
  EXPECT_EQ(rows.branches[0].from_ip, 0x1003U);
  EXPECT_EQ(rows.branches[0].kind, BranchKind::ASYNC);
}

TEST_F(NoPsb, PsbThatComesFirstCounts) {
  scene.tnt("ttt").begin().tnt("n").end(0x1004);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1003}));
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::START);
}

TEST_F(NoPsb, PsbLaterContinues) {
  scene.mode(64).pge(0x1000).tnt("t").begin(0x1004).tip(0x1003).end(0x1004);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_TRUE(rows.gaps.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1004, 0x1003}));
}

TEST_F(NoPsb, NothingToBeginAtIsAnError) {
  scene.tnt("ttt").add(PacketKind::TIP, 0x1004, 1);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 1U) << rows.log;
  EXPECT_EQ(rows.errors[0].code, Status::NO_SYNC);
  EXPECT_EQ(rows.gaps.size(), 1U);
}

TEST_F(NoPsb, StreamWithPsbIsTheSame) {
  scene.begin().tnt("n").tip(0x1000).end(0x1000);
  const std::string log = scene.decode().log;
  scene.configuration.sync = true;
  EXPECT_EQ(scene.decode().log, log);
}

// Damage costs the rest of its region, no later one.
TEST_F(NoPsb, GoesOnAfterDamage) {
  const auto region = [this] { scene.mode(64).pge(0x1000).tnt("n").end(0x1004); };
  region();
  scene.mode(64).pge(0x1000).raw({0x02, 0xff, 0x07}).tnt("n");
  region();
  region();
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.errors.size(), 1U) << rows.log;
  EXPECT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1003, 0x1000, 0x1001, 0x1003, 0x1000, 0x1001, 0x1003}));
  expect_all_decoders_equal(scene);
  // Where a PSB follows, or has to be waited for, decoding goes on there.
  const std::size_t ips = scene.decode(Resync::PSB).ips.size();
  EXPECT_EQ(ips, 3U);
  scene.options.resync = Resync::IP;
  scene.begin().end(0x1001);
  EXPECT_EQ(scene.decode().ips, (Ips{0x1000, 0x1001, 0x1003, 0x1000}));
}

TEST_F(NoPsb, GoesOnAfterLosses) {
  const auto region = [this] { scene.mode(64).pge(0x1000).tnt("n").end(0x1004); };
  region();
  scene.mode(64).pge(0x1000).tnt("n");
  for (int i = 0; i < 2; ++i) scene.stream().losses.push_back({scene.bytes().size(), Status::RING_WRAPPED});
  scene.raw({0x02});  // the end of a packet
  region();
  region();
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::LOST);
  EXPECT_EQ(rows.ips,
            (Ips{0x1000, 0x1001, 0x1003, 0x1000, 0x1001, 0x1000, 0x1001, 0x1003, 0x1000, 0x1001, 0x1003}));
  expect_all_decoders_equal(scene);
}

TEST_F(NoPsb, IsEqualInAllDecoders) {
  scene.raw({0x02, 0xff}).tnt("ttt");
  for (unsigned i = 0; i < 100; ++i) {
    scene.mode(64).pge(0x1000);
    for (int more = 0; more < 20; ++more) scene.tnt("n").tip(0x1000);
    scene.end(0x1000);
    if (i % 10 == 9) scene.begin_off();
  }
  EXPECT_TRUE(scene.decode().errors.empty());
  expect_all_decoders_equal(scene);
}

// Whatever a buffer begins with, decoding ends, and rows stay in order.
TEST_F(NoPsb, AnyPartOfAStreamEnds) {
  scene.configuration.sync = true;
  scene.begin();
  for (unsigned i = 0; i < 10; ++i)
    scene.tnt("n")
        .tip(0x1000)
        .add(PacketKind::PTW, 0x7d71d1dd, 1)
        .fup(0x1000)
        .tip(0x1003)
        .end(0x1004)
        .pge(0x1000);
  for (std::size_t skip = 1; skip < scene.bytes().size(); ++skip) {
    Scene part(kProgram);
    part.configuration.sync = false;
    part.raw({scene.bytes().begin() + static_cast<std::ptrdiff_t>(skip), scene.bytes().end()});
    EXPECT_TRUE(part.decode().spans_in_order);
  }
}

}  // namespace
}  // namespace ptkit::flow
