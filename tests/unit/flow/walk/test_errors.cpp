// Mismatches: error rows, gaps, and where decoding continues.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using base::Status;

std::vector<std::uint8_t> nops(std::size_t count = 16) { return std::vector<std::uint8_t>(count, 0x90); }

struct ErrorCase {
  const char* name;
  std::vector<std::uint8_t> code;
  void (*packets)(Scene&);  // after the PSB+ at 1000
  Status status;
  std::uint64_t ip;
  bool needs_psb = false;  // even Resync::IP cannot continue before the next PSB
};

// Whatever happened, a jump to 2000 follows, then a PSB+ at 2004.
class Errors : public testing::TestWithParam<ErrorCase> {
 protected:
  static Collect run(Resync resync) {
    Scene scene(GetParam().code);
    scene.put(0x2000, nops());
    scene.begin();
    GetParam().packets(scene);
    scene.fup(0x1008).tip(0x2000).end(0x2002);
    scene.begin(0x2004).end(0x2006);
    return scene.decode(resync);
  }
};

TEST_P(Errors, ResyncsAtNextIp) {
  const ErrorCase& want = GetParam();
  const Collect rows = run(Resync::IP);
  ASSERT_GE(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, want.status);
  if (want.ip != 0) {
    EXPECT_TRUE(rows.errors[0].ip_known);
    EXPECT_EQ(rows.errors[0].ip, want.ip);
  }
  ASSERT_GE(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::ERROR);
  EXPECT_EQ(rows.gaps[0].code, want.status);
  EXPECT_EQ(rows.gaps[0].begin, rows.errors[0].span.offset);
  EXPECT_GE(rows.gaps[0].end, rows.gaps[0].begin);
  Ips tail = want.needs_psb ? Ips{0x2004, 0x2005} : Ips{0x2000, 0x2001, 0x2004, 0x2005};
  ASSERT_GE(rows.ips.size(), tail.size());
  EXPECT_TRUE(std::equal(tail.rbegin(), tail.rend(), rows.ips.rbegin())) << rows.log;
}

TEST_P(Errors, ResyncsAtNextPsb) {
  const ErrorCase& want = GetParam();
  const Collect rows = run(Resync::PSB);
  ASSERT_EQ(rows.errors.size(), 1u) << rows.log;
  EXPECT_EQ(rows.errors[0].code, want.status);
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x2004u);
  EXPECT_EQ(rows.gaps[0].flags & TO_KNOWN, TO_KNOWN);
  Ips tail{0x2004, 0x2005};
  ASSERT_GE(rows.ips.size(), tail.size());
  EXPECT_TRUE(std::equal(tail.rbegin(), tail.rend(), rows.ips.rbegin()));
  EXPECT_EQ(std::count(rows.ips.begin(), rows.ips.end(), 0x2000u), 0);
}

const std::vector<std::uint8_t> kCondition{0x90, 0x74, 0xfe};  // nop; jz 1001
const std::vector<std::uint8_t> kIndirect{0xff, 0xe0};         // jmp rax

INSTANTIATE_TEST_SUITE_P(
    All, Errors,
    testing::Values(
        ErrorCase{"no_code", {0xff, 0xe0}, [](Scene& s) { s.tip(0x7000).tnt("t"); }, Status::NO_CODE, 0x7000},
        ErrorCase{"bad_insn",
                  {0x90, 0x0f, 0x04, 0, 0, 0, 0, 0},
                  [](Scene& s) { s.tnt("t"); },
                  Status::BAD_INSN,
                  0x1001},
        ErrorCase{"tip_at_conditional", kCondition, [](Scene& s) { s.tip(0x2000); }, Status::TNT_MISMATCH,
                  0x1001},
        ErrorCase{"bit_at_indirect", kIndirect, [](Scene& s) { s.tnt("t").tnt("t"); }, Status::TIP_MISMATCH,
                  0x1000},
        ErrorCase{"fup_not_reached", kCondition, [](Scene& s) { s.fup(0x1008).tip(0x2000); },
                  Status::FUP_MISMATCH, 0x1001},
        ErrorCase{"loop", {0xeb, 0xfe}, [](Scene& s) { s.tnt("t"); }, Status::INFINITE_LOOP, 0x1000},
        ErrorCase{"long_loop",
                  {0x90, 0xeb, 0x02, 0x90, 0x90, 0xeb, 0xf9},
                  [](Scene& s) { s.tnt("t"); },
                  Status::INFINITE_LOOP,
                  0},
        ErrorCase{
            "return_without_call", {0xc3}, [](Scene& s) { s.tnt("t"); }, Status::RETURN_STACK_EMPTY, 0x1000},
        ErrorCase{"enabled_twice", nops(), [](Scene& s) { s.fup(0x1002).tip(0x1003).pge(0x1004); },
                  Status::UNEXPECTED_PACKET, 0x1003},
        ErrorCase{"tip_without_ip", kIndirect, [](Scene& s) { s.add(PacketKind::TIP, 0, 0); }, Status::NO_IP,
                  0x1000},
        ErrorCase{"stop_while_on", nops(), [](Scene& s) { s.add(PacketKind::TRACE_STOP).pge(0x1004); },
                  Status::UNEXPECTED_PACKET, 0x1000},
        ErrorCase{"bad_opcode", nops(),
                  [](Scene& s) {
                    s.raw({0x02, 0x0b});
                  },
                  Status::BAD_OPCODE, 0x1000, true},
        ErrorCase{"reserved_ip_bytes", nops(),
                  [](Scene& s) {
                    s.raw({0xad, 1, 2});
                  },
                  Status::BAD_IP_COMPRESSION, 0x1000, true}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(ErrorRows, HaveImageRange) {
  Scene scene({0xff, 0xe0, 0x90});
  scene.bundle().files.push_back({});
  scene.bundle().code[0].file = 0;
  // Behind the last byte of the region; in the page of nothing.
  const Collect outside = scene.begin().tip(0x1002).tnt("t").decode();
  ASSERT_EQ(outside.errors.size(), 1u);
  EXPECT_EQ(outside.errors[0].code, Status::NO_CODE);
  EXPECT_EQ(outside.errors[0].ip, 0x1003u);
  EXPECT_EQ(outside.errors[0].argument, 0x1000u);
  EXPECT_EQ(outside.errors[0].argument2, 4096u);
  EXPECT_EQ(outside.errors[0].file, -1);
  // A region with bytes that are not code.
  Scene wrong({0x90, 0x0f, 0x04});
  wrong.bundle().files.push_back({});
  wrong.bundle().code[0].file = 0;
  const Collect inside = wrong.begin().tnt("t").decode();
  ASSERT_EQ(inside.errors.size(), 1u);
  EXPECT_EQ(inside.errors[0].argument, 0x1000u);
  EXPECT_EQ(inside.errors[0].argument2, 3u);
  EXPECT_EQ(inside.errors[0].file, 0);
}

TEST(ErrorRows, HaveBytesOfBadPacket) {
  const Collect rows = Scene(nops()).begin().raw({0x02, 0x0b}).decode();
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].argument, 0x0b02u);
  EXPECT_EQ(rows.errors[0].argument2, 2u);
}

TEST(ErrorRows, TruncatedPacketAtEndOfStream) {
  const Collect rows = Scene(nops()).begin().raw({0x71, 0x10}).decode();
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, Status::TRUNCATED_PACKET);
  ASSERT_EQ(rows.gaps.size(), 1u);
}

TEST(ErrorRows, EmptyStreamHasNoRows) {
  const Collect empty = Scene().decode();
  EXPECT_TRUE(empty.errors.empty());
  EXPECT_TRUE(empty.gaps.empty());
}

TEST(ErrorRows, NoPsb) {
  const Collect none = Scene(nops()).raw({1, 2, 3, 4, 5}).decode();
  ASSERT_EQ(none.errors.size(), 1u);
  EXPECT_EQ(none.errors[0].code, Status::NO_SYNC);
  ASSERT_EQ(none.gaps.size(), 1u);
  EXPECT_EQ(none.gaps[0].cause, GapCause::START);
  EXPECT_EQ(none.gaps[0].end, 5u);
}

TEST(Gaps, BytesBeforeFirstPsb) {
  const Collect rows = Scene(nops()).raw({0x06, 0x06, 0x06}).begin().end(0x1001).decode();
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::START);
  EXPECT_EQ(rows.gaps[0].begin, 0u);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x1000u);
}

TEST(Gaps, LossesSplitStream) {
  Scene scene(nops());
  scene.begin().raw({0x71, 0x10});  // a TIP.PGE that was cut
  const std::uint64_t cut = scene.bytes().size();
  scene.stream().losses.push_back({cut, Status::RING_WRAPPED, 0});
  const Collect rows = scene.raw({0x33, 0x33}).begin(0x1004).end(0x1006).decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::LOST);
  EXPECT_EQ(rows.gaps[0].code, Status::RING_WRAPPED);
  EXPECT_EQ(rows.gaps[0].begin, cut);
  EXPECT_EQ(rows.ips, (Ips{0x1004, 0x1005}));
}

TEST(Gaps, LossAtStartExplainsTruncatedStart) {
  Scene scene(nops());
  scene.stream().losses.push_back({0, Status::RING_WRAPPED, 0});
  const Collect rows = scene.raw({0x06}).begin().end(0x1001).decode();
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::LOST);
  EXPECT_EQ(rows.gaps[0].code, Status::RING_WRAPPED);
}

// As of a buffer that was full when the recording ended.
TEST(Gaps, LossAtEndMayCutPacket) {
  Scene scene(nops());
  scene.begin().raw({0x71, 0x10});
  scene.stream().losses.push_back({scene.bytes().size(), Status::BUFFER_FULL, 0});
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::LOST);
  EXPECT_EQ(rows.gaps[0].code, Status::BUFFER_FULL);
  EXPECT_EQ(rows.gaps[0].end, scene.bytes().size());
}

TEST(Gaps, StreamThatIsLostIsOneGap) {
  Scene scene(nops());
  scene.stream().losses.push_back({0, Status::NOT_TRACED, 0});
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty()) << rows.log;
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::LOST);
  EXPECT_EQ(rows.gaps[0].code, Status::NOT_TRACED);
  EXPECT_EQ(rows.gaps[0].end, 0u);
}

TEST(Contradictions, PsbReportsDisabledWhileEnabled) {
  Scene scene(nops());
  scene.begin().psb().mode(64).psbend().pge(0x1004).end(0x1005);
  const Collect at_once = scene.decode(Resync::IP);
  ASSERT_EQ(at_once.errors.size(), 1u);
  EXPECT_EQ(at_once.errors[0].code, Status::UNEXPECTED_PACKET);
  EXPECT_EQ(at_once.ips, (Ips{0x1004}));
  EXPECT_TRUE(scene.decode(Resync::PSB).ips.empty());
}

TEST(Contradictions, PsbReportsEnabledWhileDisabled) {
  Scene scene(nops());
  scene.begin_off().begin(0x1004).end(0x1006);
  const Collect rows = scene.decode(Resync::IP);
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.ips, (Ips{0x1004, 0x1005}));
}

TEST(Contradictions, PsbInsidePsb) {
  Scene scene(nops());
  scene.begin().psb().mode(64).begin(0x1004).end(0x1006).begin_off();
  const Collect rows = scene.decode(Resync::IP);
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, Status::UNEXPECTED_PACKET);
  EXPECT_EQ(rows.ips, (Ips{0x1004, 0x1005}));
  EXPECT_TRUE(scene.decode(Resync::PSB).ips.empty());
}

TEST(Contradictions, EventsDoNotSpanPsb) {
  Scene scene(nops());
  scene.begin().add(PacketKind::PTW, 9, 0, packet::Packet::IP_BIT).begin(0x1002).end(0x1003);
  const Collect rows = scene.decode(Resync::IP);
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, Status::UNEXPECTED_PACKET);
  EXPECT_EQ(std::count_if(rows.events.begin(), rows.events.end(),
                          [](const Event& row) { return row.kind == EventKind::PTWRITE; }),
            1);
  EXPECT_EQ(rows.ips.back(), 0x1002u);
}

// 1000 jmp rax; 1002 nop; 1003 jz 1005; 1005 jmp rax; 1007 jz 1009; 1009 nop
const std::vector<std::uint8_t> kLeaves{0xff, 0xe0, 0x90, 0x74, 0, 0xff, 0xe0, 0x74, 0, 0x90, 0x90};

TEST(MissingCode, DropsTipsDeferredOverDroppedTnt) {
  // The bits after the TIP to 1002 are unknown: only the FUP gives a certain position.
  Scene scene(kLeaves);
  scene.begin().tip(0x7000).tnt("tnt");
  const std::uint64_t noticed = scene.last;
  const Collect rows = scene.tip(0x1002).fup(0x1009).tip(0x1002).end(0x1003).decode(Resync::IP);
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1002}));
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].begin, noticed);
  EXPECT_EQ(rows.gaps[0].from_ip, 0x7000u);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x1009u);
}

TEST(MissingCode, ResyncsAtTipThatFlushesTnt) {
  // A TNT packet that is not full, a TIP, and another TNT: this processor does not defer TIPs.
  Scene scene(kLeaves);
  scene.begin(0x1002).tnt("n").tip(0x1003).tnt("n").tip(0x7000).tnt("tnt").tip(0x1002);
  const std::uint64_t back = scene.last;
  const Collect rows = scene.end(0x1003).decode(Resync::IP);
  EXPECT_EQ(rows.ips, (Ips{0x1002, 0x1003, 0x1005, 0x1003, 0x1005, 0x1002}));
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].end, back);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x1002u);
}

TEST(MissingCode, ResyncsAtTipAfterTip) {
  // No bits were dropped.
  Scene scene(kLeaves);
  const Collect rows = scene.begin().tip(0x7000).tip(0x1002).end(0x1003).decode(Resync::IP);
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1002}));
  EXPECT_EQ(rows.errors.size(), 1u);
}

TEST(MissingCode, EmitsEventsWithoutAnyCode) {
  Scene scene;
  scene.begin().tnt("tnt").tip(0x2000).fup(0x3000).tip(0x4000).tnt("t").end(0x4001);
  scene.pge(0x5000).add(PacketKind::PTW, 7).tnt("n").pgd();
  const Collect rows = scene.decode(Resync::IP);
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, Status::NO_CODE);
  EXPECT_EQ(rows.errors[0].ip, 0x1000u);
  EXPECT_TRUE(rows.blocks.empty());
  EXPECT_EQ(rows.gaps.size(), 2u);  // while packets were on
  std::vector<EventKind> kinds;
  for (const Event& row : rows.events) {
    if ((row.flags & EV_STATUS) == 0) kinds.push_back(row.kind);
  }
  EXPECT_EQ(kinds, (std::vector<EventKind>{EventKind::ASYNC_BRANCH, EventKind::ASYNC_DISABLED,
                                           EventKind::ENABLED, EventKind::PTWRITE, EventKind::DISABLED}));
  ASSERT_EQ(rows.branches.size(), 2u);
  EXPECT_EQ(rows.branches[0].kind, BranchKind::ASYNC);
}

// --- Streams without TNT packets
// ------------------------------------------------------------------------------

// 1000 jz 1003; 1002 nop; 1003 jmp rax; 1005 nop; 1006 jz 100a; 1008 jmp rax; 100a call rax; 100c nop
const std::vector<std::uint8_t> kNoTnt{0x74, 0x01, 0x90, 0xff, 0xe0, 0x90, 0x74,
                                       0x02, 0xff, 0xe0, 0xff, 0xd0, 0x90};

TEST(NoTnt, ConditionalBranchOpensGap) {
  Scene scene(kNoTnt);
  scene.configuration.rtit_ctl_known = true;
  scene.configuration.rtit_ctl = std::uint64_t{1} << 55U;
  const Collect rows = scene.begin().tip(0x1005).tip(0x100c).fup(0x100c).pgd().decode();
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1005, 0x1006}));
  ASSERT_EQ(rows.gaps.size(), 2u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::TNT_DISABLED);
  EXPECT_EQ(rows.gaps[0].from_ip, 0x1000u);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x1005u);
  ASSERT_EQ(rows.branches.size(), 3u);
  // All ways from 1000 lead to the jump at 1003; from 1006 they part.
  EXPECT_EQ(rows.branches[0].kind, BranchKind::JUMP_INDIRECT);
  EXPECT_EQ(rows.branches[0].from_ip, 0x1003u);
  EXPECT_EQ(rows.branches[1].flags & FROM_KNOWN, 0);
  EXPECT_EQ(rows.branches[1].to_ip, 0x100cu);
  EXPECT_EQ(rows.branches[2].kind, BranchKind::ASYNC);
  for (const Branch& row : rows.branches) EXPECT_NE(row.kind, BranchKind::COND);
}

TEST(NoTnt, BindsEventsAfterConditionalByIp) {
  Scene scene(kNoTnt);
  scene.configuration.rtit_ctl_known = true;
  scene.configuration.rtit_ctl = std::uint64_t{1} << 55U;
  const Collect rows = scene.begin(0x1005).fup(0x100a).tip(0x1002).end(0x1003).decode();
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1005, 0x1006, 0x1002}));
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x100au);
}

TEST(NoTnt, IsDetectedFromStream) {
  Scene scene(kNoTnt);
  scene.begin();
  for (int i = 0; i < 20; ++i) scene.tip(0x1000);
  const Collect rows = scene.end(0x1000).decode();
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.gaps.size(), 20u);
  EXPECT_EQ(rows.branches.size(), 21u);
  // A few targets prove nothing.
  const Collect few = Scene(kNoTnt).begin().tip(0x1000).end(0x1000).decode();
  EXPECT_EQ(few.errors.size(), 1u);
}

}  // namespace
}  // namespace ptkit::flow
