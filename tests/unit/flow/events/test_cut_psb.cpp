// A PSB+ that no PSBEND ends: what it has counts, and the packet that cannot be in it is used as usual.
#include <gtest/gtest.h>

#include "unit/flow/all_decoders.h"

namespace ptkit::flow {
namespace {

using base::Status;

// 1000 nop; 1001 jz 1004; 1003 nop; 1004 jmp rax
const std::vector<std::uint8_t> kProgram = {0x90, 0x74, 0x01, 0x90, 0xff, 0xe0};

struct Cut {
  const char* name;
  void (*packets)(Scene&);  // after a PSB+ that lacks its PSBEND
  bool on;                  // with a FUP to 1000
  Ips ips;
  std::size_t gaps = 0;
};

class CutPsb : public testing::TestWithParam<Cut> {};

void begin_cut(Scene& scene, bool on) {
  scene.psb().add(PacketKind::CBR, 20).mode(64);
  if (on) scene.fup(0x1000);
}

TEST_P(CutPsb, PacketsBehindItCount) {
  Scene scene(kProgram);
  begin_cut(scene, GetParam().on);
  GetParam().packets(scene);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 1U) << rows.log;
  EXPECT_EQ(rows.errors[0].code, Status::UNEXPECTED_PACKET);
  EXPECT_EQ(rows.ips, GetParam().ips) << rows.log;
  EXPECT_EQ(rows.gaps.size(), GetParam().gaps) << rows.log;
  const Collect as_libipt = scene.decode(Resync::PSB);
  EXPECT_GE(as_libipt.errors.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    All, CutPsb,
    testing::Values(
        Cut{"pge", [](Scene& s) { s.pge(0x1000).tnt("t").end(0x1004); }, false, {0x1000, 0x1001}},
        // Erratum BDM70: the PSB+ before a TIP.PGE may report enabled packets.
        Cut{"pge_after_fup", [](Scene& s) { s.pge(0x1000).tnt("t").end(0x1004); }, true, {0x1000, 0x1001}},
        Cut{"tnt", [](Scene& s) { s.tnt("n").end(0x1004); }, true, {0x1000, 0x1001, 0x1003}},
        Cut{"pgd", [](Scene& s) { s.pgd(0x1004).pge(0x1003).end(0x1004); }, true, {0x1000, 0x1001, 0x1003}},
        // No FUP: the TIP says where execution is.
        Cut{"tip", [](Scene& s) { s.tip(0x1000).tnt("t").end(0x1004); }, false, {0x1000, 0x1001}, 1},
        Cut{"power",
            [](Scene& s) { s.add(PacketKind::PWRE, 0x10).pge(0x1000).tnt("t").end(0x1004); },
            false,
            {0x1000, 0x1001}},
        Cut{"psb", [](Scene& s) { s.begin().tnt("t").end(0x1004); }, true, {0x1000, 0x1001}},
        // Without a FUP, nothing says whether packets are enabled: the next packet with an IP does.
        Cut{"psb_without_fup", [](Scene& s) { s.begin().tnt("t").end(0x1004); }, false, {0x1000, 0x1001}},
        Cut{"tnt_without_fup",
            [](Scene& s) { s.tnt("t").fup(0x1003).tip(0x1000).tnt("t").end(0x1004); },
            false,
            {0x1000, 0x1001},
            1},
        Cut{"pgd_without_fup", [](Scene& s) { s.pgd().pge(0x1003).end(0x1004); }, false, {0x1003}, 1}),
    [](const auto& one) { return std::string(one.param.name); });

// In the middle of a stream, the state that is known stays unless the PSB+ contradicts it.
TEST(CutPsbLater, KnownStateStays) {
  Scene scene(kProgram);
  scene.begin().psb().mode(64).fup(0x1000).tnt("n").end(0x1004);
  Collect rows = scene.decode();
  EXPECT_EQ(rows.errors.size(), 1U);
  EXPECT_TRUE(rows.gaps.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1003}));
  Scene lost(kProgram);
  lost.begin().psb().mode(64).pge(0x1003).end(0x1004);  // the TIP.PGD was lost
  rows = lost.decode();
  EXPECT_EQ(rows.errors.size(), 1U) << rows.log;
  EXPECT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.ips, (Ips{0x1003}));
}

TEST(CutPsbLater, ModeAndPagingCount) {
  Scene scene({0x40, 0xff, 0xe0});  // 32 bits: inc eax; jmp eax
  scene.psb().mode(32).pge(0x1000).end(0x1001);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.ips, (Ips{0x1000}));
}

TEST(CutPsbLater, IsEqualInAllDecoders) {
  Scene scene(kProgram);
  for (unsigned i = 0; i < 120; ++i) {
    if (i % 3 == 0) {
      scene.psb().mode(64);
      if (i % 2 == 0) scene.fup(0x1000).tnt("t").tip(0x1000).end(0x1000);
    } else {
      scene.begin_off();
    }
    scene.pge(0x1000);
    for (int more = 0; more < 20; ++more) scene.tnt("n").tip(0x1000);
    scene.end(0x1000);
  }
  EXPECT_EQ(scene.decode().errors.size(), 40U);
  expect_all_decoders_equal(scene);
}

}  // namespace
}  // namespace ptkit::flow
