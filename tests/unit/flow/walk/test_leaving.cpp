// Where a trace ends by TIP.PGD without IP: at the MOV CR3 that left the context, or at a far transfer. A MOV
// CR3 that stays in the context has a PIP, one that leaves it has none (manual: "Packet Generation Under
// Different Enable Conditions", MOV to CR3). A TIP.PGD with an IP ends at the branch that leads to it: that
// of a conditional branch, which the manual leaves without IP and software trace units do not, is its target
// or the next instruction.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/flow/all_decoders.h"

namespace ptkit::flow {
namespace {

using base::Status;

// 1000 mov cr3, rax; 1003 nop; 1004 mov cr3, rax; 1007 nop; 1008 sysret
const std::vector<std::uint8_t> kCode = {0x0f, 0x22, 0xd8, 0x90, 0x0f, 0x22, 0xd8, 0x90, 0x48, 0x0f, 0x07};

TEST(Leaving, MovCr3WithoutPipLeaves) {
  const Collect rows = Scene(kCode).begin().pgd().decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000}));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Leaving, MovCr3WithPipStays) {
  const Collect rows = Scene(kCode).begin().add(PacketKind::PIP, 0x5000).pgd().decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1003, 0x1004}));
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Leaving, FarTransferAfterMovCr3Leaves) {
  const Collect rows =
      Scene(kCode).begin().add(PacketKind::PIP, 0x5000).add(PacketKind::PIP, 0x6000).pgd().decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1003, 0x1004, 0x1007, 0x1008}));
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_EQ(rows.branches.size(), 1U);
  EXPECT_EQ(rows.branches[0].from_ip, 0x1008U);
  EXPECT_EQ(rows.branches[0].kind, BranchKind::SYSRET);
}

// 1000 nop; 1001 jz 1005; 1003 nop; 1004 nop; 1005 jz 1001; 1007 jmp 9000; 100c nop; 100d jmp rax; 100f
// syscall
const std::vector<std::uint8_t> kConditional = {0x90, 0x74, 0x02, 0x90, 0x90, 0x74, 0xfa, 0xe9, 0xf4,
                                                0x7f, 0x00, 0x00, 0x90, 0xff, 0xe0, 0x0f, 0x05};
constexpr std::uint8_t kFell = FROM_KNOWN | TO_KNOWN;
constexpr std::uint8_t kWent = kFell | TAKEN;

std::string text_of(const Branch& row) {
  return Collect::hex(row.from_ip) + ">" + Collect::hex(row.to_ip) + "/" + std::to_string(row.flags);
}

void expect_elsewhere(const Collect& rows, std::uint64_t offset) {
  ASSERT_EQ(rows.errors.size(), 1U) << rows.log;
  EXPECT_EQ(rows.errors[0].code, Status::TNT_MISMATCH);
  EXPECT_TRUE(rows.errors[0].ip_known);
  EXPECT_EQ(rows.errors[0].ip, 0x1001U);
  EXPECT_EQ(rows.errors[0].span.offset, offset);
  EXPECT_EQ(rows.errors[0].argument, static_cast<std::uint64_t>(PacketKind::TIP_PGD));
  EXPECT_EQ(rows.errors[0].argument2, 0x9999U);
}

TEST(Leaving, ConditionalToOtherIpIsMismatch) {
  Scene scene(kConditional);
  const std::uint64_t offset = scene.begin().pgd(0x9999).last;
  scene.pge(0x100c).end(0x100d);
  for (const Resync resync : {Resync::IP, Resync::PSB}) {
    const Collect rows = scene.decode(resync);
    expect_elsewhere(rows, offset);
    // Packets are disabled in any case, and decoding continues as usual: no gap.
    EXPECT_TRUE(rows.gaps.empty());
    EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x100c}));
    EXPECT_EQ(text_of(rows.branches.at(0)), "1001>9999/" + std::to_string(kFell));
    const auto disabled = std::find_if(rows.events.begin(), rows.events.end(),
                                       [](const Event& row) { return row.kind == EventKind::DISABLED; });
    ASSERT_NE(disabled, rows.events.end());
    EXPECT_EQ(disabled->ip, 0x9999U);
    const std::string order = "block 1000 2\nbranch 1001 9999\nerror TNT_MISMATCH\nevent 1\n";
    EXPECT_NE(rows.log.find(order), std::string::npos) << rows.log;
  }
}

TEST(Leaving, ConditionalAfterBranchesIsMismatch) {
  Scene scene(kConditional);
  const std::uint64_t offset = scene.begin().tnt("tt").pgd(0x9999).last;
  const Collect rows = scene.decode();
  expect_elsewhere(rows, offset);
  EXPECT_EQ(rows.branches.size(), 3U);
}

TEST(Leaving, ConditionalInTracedRangeIsMismatch) {
  Scene scene(kConditional);
  scene.configuration.ranges[0] = {trace::RangeKind::FILTER, 0x1000, 0x1010};
  const std::uint64_t offset = scene.begin().pgd(0x9999).last;
  expect_elsewhere(scene.decode(), offset);
}

struct Leave {
  const char* name;
  void (*packets)(Scene&);
  const char* branch;  // the last one
};

class LeavingBranches : public testing::TestWithParam<Leave> {};

TEST_P(LeavingBranches, EmitNoError) {
  for (const bool filtered : {false, true}) {
    Scene scene(kConditional);
    if (filtered) scene.configuration.ranges[0] = {trace::RangeKind::FILTER, 0x1000, 0x1004};
    GetParam().packets(scene);
    const Collect rows = scene.decode();
    EXPECT_TRUE(rows.errors.empty()) << rows.log;
    EXPECT_TRUE(rows.gaps.empty());
    ASSERT_FALSE(rows.branches.empty());
    EXPECT_EQ(text_of(rows.branches.back()), GetParam().branch);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LeavingBranches,
    testing::Values(Leave{"to_the_target", [](Scene& s) { s.begin().pgd(0x1005); }, "1001>1005/7"},
                    Leave{"to_the_next_instruction", [](Scene& s) { s.begin().pgd(0x1003); }, "1001>1003/3"},
                    Leave{"by_a_direct_branch_behind_it", [](Scene& s) { s.begin().tnt("nn").pgd(0x9000); },
                          "1007>9000/7"},
                    Leave{"by_an_indirect_branch", [](Scene& s) { s.begin(0x100c).pgd(0x9999); },
                          "100d>9999/7"},
                    Leave{"by_a_far_transfer", [](Scene& s) { s.begin(0x100f).pgd(0x9999); }, "100f>9999/7"},
                    Leave{"by_an_interrupt_before_it", [](Scene& s) { s.begin().fup(0x1001).pgd(0x9999); },
                          "1001>9999/7"},
                    Leave{"by_an_interrupt_behind_it",
                          [](Scene& s) { s.begin().tnt("t").fup(0x1005).pgd(0x9999); }, "1005>9999/7"},
                    Leave{"by_an_interrupt_into_another_context",
                          [](Scene& s) { s.begin().fup(0x1001).add(PacketKind::PIP, 0x5000).pgd(0x9999); },
                          "1001>9999/7"},
                    Leave{"straight_on", [](Scene& s) { s.begin().tnt("t").pgd(0x1005); }, "1001>1005/7"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Leaving, TipPgdWithoutIpAcceptsConditional) {
  const Collect rows = Scene(kConditional).begin().pgd().decode();
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(text_of(rows.branches.at(0)), "1001>0/" + std::to_string(FROM_KNOWN));
}

TEST(Leaving, WithoutTntOpensGap) {
  // A branch after the conditional branch may have left, whichever way the conditional went.
  Scene scene(kConditional);
  scene.begin(0x100d);
  for (int i = 0; i < 20; ++i) scene.tip(0x100d);
  const Collect rows = scene.tip(0x1000).pgd(0x9999).decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  ASSERT_EQ(rows.gaps.size(), 1U);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::TNT_DISABLED);
  EXPECT_EQ(rows.branches.back().from_ip, 0x100dU);
}

// The fast path and segments: 200 times right, of which it remembers each, and wrong here and there.
TEST(Leaving, MismatchIsEqualInAllDecoders) {
  Scene scene(kConditional);
  scene.begin();
  for (unsigned i = 0; i < 200; ++i) {
    scene.pgd(i % 7 == 3 ? 0x9999 : i % 2 == 0 ? 0x1003 : 0x1005).pge(0x1000);
    if (i % 10 == 0) scene.begin();
  }
  EXPECT_EQ(scene.decode().errors.size(), 29U);
  expect_all_decoders_equal(scene);
}

// Without address ranges no near branch disables packets.
struct NoFilter {
  const char* name;
  std::vector<std::uint8_t> code;
  std::uint64_t branch;  // where the error is
};

class WithoutFilter : public testing::TestWithParam<NoFilter> {};

TEST_P(WithoutFilter, NearBranchDoesNotDisablePackets) {
  for (const bool has_ip : {false, true}) {
    Scene scene(GetParam().code);
    scene.put(0x2000, {0x90, 0x0f, 0x05});  // nop; syscall
    scene.begin();
    scene = has_ip ? scene.pgd(0x9999) : scene.pgd();
    scene.pge(0x2000).pgd();
    const Collect unknown = scene.decode();
    ASSERT_GE(unknown.branches.size(), 2U);
    EXPECT_EQ(unknown.branches[unknown.branches.size() - 2].from_ip, GetParam().branch) << unknown.log;
    scene.configuration.ranges_known = true;
    for (const Resync resync : {Resync::IP, Resync::PSB}) {
      const Collect rows = scene.decode(resync);
      ASSERT_EQ(rows.errors.size(), 1U) << rows.log;
      EXPECT_EQ(rows.errors[0].code, Status::TNT_MISMATCH);
      EXPECT_EQ(rows.errors[0].ip, GetParam().branch);
      EXPECT_EQ(rows.branches.size(), unknown.branches.size() - 1) << rows.log;
      EXPECT_EQ(rows.branches.back().from_ip, 0x2001U);
      EXPECT_TRUE(rows.gaps.empty());
    }
    scene.configuration.ranges[0] = {trace::RangeKind::FILTER, 0x1000, 0x2fff};
    EXPECT_EQ(scene.decode().branches.size(), unknown.branches.size());
  }
}

INSTANTIATE_TEST_SUITE_P(All, WithoutFilter,
                         testing::Values(NoFilter{"call_indirect", {0x90, 0xff, 0xd0}, 0x1001},
                                         NoFilter{"jump_indirect", {0xff, 0xe0}, 0x1000},
                                         NoFilter{"return_", {0x90, 0xc3}, 0x1001},
                                         // call 1006; 1005 nop; 1006 ret
                                         NoFilter{"behind_a_call", {0xe8, 1, 0, 0, 0, 0x90, 0xc3}, 0x1006}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(WithoutFilterAll, ConditionalHasNoRow) {
  Scene scene(kConditional);
  scene.configuration.ranges_known = true;
  scene.begin().pgd().pge(0x100c).end(0x100d);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].code, Status::TNT_MISMATCH);
  EXPECT_EQ(rows.branches.size(), 1U);  // the interrupt
}

TEST(WithoutFilterAll, FarTransfersMovCr3AndInterruptsStillDo) {
  Scene scene(kCode);
  scene.put(0x2000, {0x90, 0xff, 0xe0});
  scene.configuration.ranges_known = true;
  scene.begin().pgd().pge(0x1007).pgd().pge(0x2000).end(0x2001).pge(0x2000).fup(0x2001).pgd(0x9999);
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  EXPECT_EQ(rows.branches.size(), 3U) << rows.log;
}

TEST(WithoutFilterAll, IsEqualInAllDecoders) {
  Scene scene({0x90, 0x74, 0x01, 0x90, 0xff, 0xd0, 0x0f, 0x05});  // nop; jz 1004; nop; call rax; syscall
  scene.configuration.ranges_known = true;
  scene.begin();
  for (unsigned i = 0; i < 200; ++i) {
    scene.tnt(i % 2 == 0 ? "t" : "n");
    if (i % 5 != 0) scene.tip(0x1006);
    scene.pgd().pge(0x1000);
    if (i % 10 == 0) scene.begin();
  }
  EXPECT_EQ(scene.decode().errors.size(), 40U);
  expect_all_decoders_equal(scene);
}

}  // namespace
}  // namespace ptkit::flow
