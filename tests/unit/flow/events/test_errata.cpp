// Each erratum: the pattern, with the workaround and (where it makes a difference) without.
#include <gtest/gtest.h>

#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using base::Status;

std::vector<std::uint8_t> nops(std::size_t count = 16) { return std::vector<std::uint8_t>(count, 0x90); }

Collect decode_with(Scene& scene, bool packet::Errata::*flag) {
  scene.options.errata = {};
  if (flag != nullptr) scene.options.errata.*flag = true;
  return scene.decode(Resync::PSB);
}

TEST(Errata, Bdm64UsesIpOfAbort) {
  // 1000 jz 1004; 1002 hlt..; 1004 jmp rax: 1008 cannot be reached from there
  Scene scene({0x74, 0x02, 0x90, 0x90, 0xff, 0xe0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
  scene.begin().add(PacketKind::MODE_TSX, 1).fup(0x1000).tnt("t");
  scene.add(PacketKind::MODE_TSX, 2).fup(0x1008).tip(0x1009).end(0x100a);
  EXPECT_EQ(decode_with(scene, nullptr).errors.size(), 1u);
  const Collect rows = decode_with(scene, &packet::Errata::bdm64);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1009}));
}

TEST(Errata, Bdm64IgnoresReachableAborts) {
  Scene scene({0x74, 0x02, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});
  scene.begin().add(PacketKind::MODE_TSX, 1).fup(0x1000).tnt("t");
  scene.add(PacketKind::MODE_TSX, 2).fup(0x1006).tip(0x1007).end(0x1008);
  EXPECT_EQ(decode_with(scene, &packet::Errata::bdm64).ips, (Ips{0x1000, 0x1004, 0x1005, 0x1007}));
}

TEST(Errata, Bdm70AppliesToAllProcessors) {
  Scene scene(nops());
  scene.begin().end(0x1002);
  scene.psb().mode(64).fup(0x1002).psbend().add(PacketKind::CBR, 9).pge(0x1006).end(0x1007);
  for (bool packet::Errata::*flag : {static_cast<bool packet::Errata::*>(nullptr), &packet::Errata::bdm70}) {
    const Collect rows = decode_with(scene, flag);
    EXPECT_TRUE(rows.errors.empty());
    EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1006}));
  }
}

TEST(Errata, Bdm70AtStartOfStream) {
  Scene scene(nops());
  scene.psb().mode(64).fup(0x1002).psbend().pge(0x1006).end(0x1007);
  const Collect rows = decode_with(scene, nullptr);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1006}));
}

TEST(Errata, Skd007FindsOvfInCyc) {
  Scene scene(nops());
  scene.begin().raw({0x07, 0x02, 0xf3}).fup(0x1008).end(0x1009);
  const Collect rows = decode_with(scene, &packet::Errata::skd007);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1008}));
}

TEST(Errata, Skd010ContinuesAtTip) {
  Scene scene(nops());
  scene.begin().ovf().tip(0x1008).begin(0x100b).end(0x100c);
  EXPECT_EQ(decode_with(scene, nullptr).ips, (Ips{0x100b}));
  const Collect rows = decode_with(scene, &packet::Errata::skd010);
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_EQ(rows.ips, (Ips{0x1008, 0x1009, 0x100a, 0x100b}));
}

TEST(Errata, Skd010ContinuesAtPsb) {
  Scene scene(nops());
  scene.begin().ovf().begin(0x1008).end(0x1009);
  const Collect rows = decode_with(scene, &packet::Errata::skd010);
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_EQ(rows.ips, (Ips{0x1008}));
}

TEST(Errata, Skd010DetectsTipPgd) {
  Scene scene(nops());
  scene.begin().ovf().pgd().pge(0x1004).end(0x1005);
  const Collect rows = decode_with(scene, &packet::Errata::skd010);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1004}));
}

TEST(Errata, Skd010BindsModeTsxToFup) {
  Scene scene(nops());
  scene.begin().ovf().add(PacketKind::MODE_TSX, 1).fup(0x1004).end(0x1006);
  const Collect rows = decode_with(scene, &packet::Errata::skd010);
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_EQ(rows.ips, (Ips{0x1004, 0x1005}));
  EXPECT_EQ(rows.blocks[0].flags, IN_TX);
}

TEST(Errata, Skd010IgnoresCorrectStreams) {
  Scene scene(nops());
  scene.begin().ovf().add(PacketKind::PIP, 0xa000).pge(0x1004).end(0x1005);
  const Collect rows = decode_with(scene, &packet::Errata::skd010);
  EXPECT_EQ(rows.ips, (Ips{0x1004}));
  EXPECT_EQ(rows.events[3].kind, EventKind::PAGING);
}

TEST(Errata, Skd022BindsDisableToVmEntry) {
  Scene scene({0x90, 0x0f, 0x01, 0xc2, 0x90});  // nop; vmlaunch
  scene.begin().fup(0x1001).pgd();
  const Collect without = decode_with(scene, nullptr);
  EXPECT_EQ(without.branches.back().kind, BranchKind::ASYNC);
  EXPECT_EQ(without.ips, (Ips{0x1000}));
  const Collect rows = decode_with(scene, &packet::Errata::skd022);
  EXPECT_EQ(rows.branches.back().kind, BranchKind::VMENTRY);
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001}));
  EXPECT_EQ(rows.events.back().kind, EventKind::DISABLED);
}

TEST(Errata, Skl014BindsToBranchOutOfFilter) {
  // 1000 jmp 1003; 1003 nop; 1004 jmp 1100
  Scene scene({0xeb, 0x01, 0x90, 0x90, 0xe9, 0xf7, 0, 0, 0});
  scene.put(0x1100, nops());
  scene.configuration.ranges[0] = {trace::RangeKind::FILTER, 0x1000, 0x10ff};
  scene.begin().pgd().pge(0x1003).pgd();
  const Collect rows = decode_with(scene, &packet::Errata::skl014);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1003, 0x1004, 0x1003, 0x1004}));
  EXPECT_EQ(rows.branches[1].to_ip, 0x1100u);
}

TEST(Errata, Skl014BindsToBranchIntoTraceStopRange) {
  Scene scene({0xeb, 0x7e});  // jmp 1080
  scene.put(0x1080, nops());
  scene.configuration.ranges[2] = {trace::RangeKind::TRACE_STOP, 0x1080, 0x1080};
  const Collect rows = decode_with(scene.begin().pgd(), &packet::Errata::skl014);
  EXPECT_EQ(rows.ips, (Ips{0x1000}));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Errata, Apl11EndsTracingAtTipPgd) {
  Scene scene(nops());
  scene.begin().ovf().add(PacketKind::MTC, 3).pgd().pge(0x1004).end(0x1005);
  EXPECT_EQ(decode_with(scene, nullptr).errors.size(), 1u);
  const Collect rows = decode_with(scene, &packet::Errata::apl11);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1004}));
}

TEST(Errata, Apl12IgnoresFup) {
  Scene scene(nops());
  scene.begin().ovf().fup(0x1008).pge(0x1004).end(0x1005);
  EXPECT_EQ(decode_with(scene, nullptr).errors.size(), 1u);
  const Collect rows = decode_with(scene, &packet::Errata::apl12);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1004}));
}

TEST(Errata, Apl12AcceptsValidFup) {
  Scene scene(nops());
  scene.begin().ovf().fup(0x1008).end(0x100a).pge(0x1004).end(0x1005);
  EXPECT_EQ(decode_with(scene, &packet::Errata::apl12).ips, (Ips{0x1008, 0x1009, 0x1004}));
}

TEST(Errata, AllErrataKeepCorrectStreams) {
  Scene scene(nops());
  scene.begin().ovf().fup(0x1004).end(0x1005).ovf().pge(0x1006).end(0x1008);
  const Collect without = decode_with(scene, nullptr);
  scene.options.errata = packet::errata_for(trace::Cpu{});
  EXPECT_EQ(scene.decode().log, without.log);
  EXPECT_TRUE(without.errors.empty());
}

}  // namespace
}  // namespace ptkit::flow
