// Instructions that events bind to, and the contents of their rows.
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using packet::Packet;

std::vector<std::uint8_t> nops(std::size_t count = 16) { return std::vector<std::uint8_t>(count, 0x90); }

// Events that report something, without the state that PSB+ repeats.
std::vector<Event> news(const Collect& rows) {
  std::vector<Event> out;
  std::copy_if(rows.events.begin(), rows.events.end(), std::back_inserter(out),
               [](const Event& row) { return (row.flags & EV_STATUS) == 0; });
  return out;
}

TEST(Enabling, DisabledByEventAndResumed) {
  const Collect rows =
      Scene(nops()).begin().end(0x1002).pge(0x1002).end(0x1003).pge(0x1008).end(0x1009).decode();
  const std::vector<Event> got = news(rows);
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[0].kind, EventKind::ASYNC_DISABLED);
  EXPECT_EQ(got[0].payload, 0x1002u);
  EXPECT_EQ(got[1].kind, EventKind::ENABLED);
  EXPECT_NE(got[1].flags & EV_RESUMED, 0);
  EXPECT_EQ(got[3].kind, EventKind::ENABLED);
  EXPECT_EQ(got[3].flags & EV_RESUMED, 0);
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1002, 0x1008}));
}

TEST(Enabling, SystemCallLeavesWithoutTarget) {
  // 1000 nop; 1001 syscall; 1003 nop
  const Collect rows = Scene({0x90, 0x0f, 0x05, 0x90, 0x90}).begin().pgd().pge(0x1003).end(0x1004).decode();
  ASSERT_EQ(rows.branches.size(), 2u);
  EXPECT_EQ(rows.branches[0].kind, BranchKind::SYSCALL);
  EXPECT_EQ(rows.branches[0].from_ip, 0x1001u);
  EXPECT_EQ(rows.branches[0].flags & TO_KNOWN, 0);
  EXPECT_NE(news(rows)[1].flags & EV_RESUMED, 0);
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1003}));
}

TEST(Enabling, ConditionalMayLeaveTheFilter) {
  // 1000 nop; 1001 jz 1100; 1003 nop
  const std::vector<std::uint8_t> code{0x90, 0x0f, 0x84, 0xf9, 0, 0, 0, 0x90};
  Scene with_target(code);
  const Collect with_ip = with_target.begin().pgd(0x1100).decode();
  ASSERT_EQ(with_ip.branches.size(), 1u);
  EXPECT_EQ(with_ip.branches[0].to_ip, 0x1100u);
  EXPECT_EQ(with_ip.branches[0].flags, FROM_KNOWN | TO_KNOWN | TAKEN);

  // The manual's cases 7e and 7f: no IP, but only one path leads out of the region.
  Scene without(code);
  without.configuration.ranges[0] = {trace::RangeKind::FILTER, 0x1000, 0x10ff};
  const Collect found = without.begin().pgd().decode();
  ASSERT_EQ(found.branches.size(), 1u);
  EXPECT_EQ(found.branches[0].to_ip, 0x1100u);
  EXPECT_EQ(found.branches[0].flags, FROM_KNOWN | TO_KNOWN | TAKEN);
  EXPECT_TRUE(found.errors.empty());
}

TEST(Enabling, FarCallResumesAfterIt) {
  const Collect rows = Scene({0xff, 0x18, 0x90, 0x90}).begin().pgd(0x5000).pge(0x1002).end(0x1003).decode();
  EXPECT_EQ(rows.branches[0].kind, BranchKind::FAR_CALL);
  EXPECT_EQ(rows.branches[0].to_ip, 0x5000u);
  EXPECT_NE(news(rows)[1].flags & EV_RESUMED, 0);
}

TEST(Async, BranchAndReturn) {
  Scene scene(nops());
  scene.put(0x2000, {0x90, 0x48, 0xcf});  // nop; iretq
  const Collect rows = scene.begin().fup(0x1003).tip(0x2000).tip(0x1003).end(0x1004).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1002, 0x2000, 0x2001, 0x1003}));
  EXPECT_EQ(rows.branches[0].kind, BranchKind::ASYNC);
  EXPECT_EQ(rows.branches[0].from_ip, 0x1003u);
  EXPECT_EQ(rows.branches[0].to_ip, 0x2000u);
  EXPECT_EQ(rows.branches[1].kind, BranchKind::IRET);
  EXPECT_EQ(news(rows)[0].kind, EventKind::ASYNC_BRANCH);
}

TEST(Paging, BindsToMovCr3) {
  // 1000 nop; 1001 mov cr3, rax; 1004 nop
  Scene scene({0x90, 0x0f, 0x22, 0xd8, 0x90, 0x90});
  const Collect rows = scene.begin().add(PacketKind::PIP, 0xa000, 0, Packet::NR).end(0x1005).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1004}));
  const Event row = news(rows)[0];
  EXPECT_EQ(row.kind, EventKind::PAGING);
  EXPECT_EQ(row.payload, 0xa000u);
  EXPECT_EQ(row.flags, EV_NON_ROOT | EV_IP_KNOWN);
  EXPECT_EQ(row.ip, 0x1001u);
  EXPECT_EQ(rows.blocks[0].insns.size(), 2u);  // the event ends the block
}

TEST(Paging, SelectsAddressSpace) {
  Scene scene({0x90, 0x0f, 0x22, 0xd8, 0x90, 0x90, 0x90});
  scene.bundle().spaces.push_back({.pid = 7, .cr3 = 0xa000, .cr3_known = true});
  // In the other space the same address holds a two-byte instruction.
  scene.put(0x1000, {0x90, 0x0f, 0x22, 0xd8, 0x66, 0x90, 0x90}, trace::kTscMin, trace::kTscMax, 1);
  const Collect rows = scene.begin().add(PacketKind::PIP, 0xa000).end(0x1006).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1004}));
  ASSERT_EQ(rows.contexts.size(), 2u);
  EXPECT_EQ(rows.contexts[1].space, 1u);
  EXPECT_EQ(rows.contexts[1].pid, 7);
}

TEST(Paging, BetweenFupAndTipBindsToTip) {
  Scene scene(nops());
  scene.put(0x2000, nops());
  scene.begin()
      .fup(0x1001)
      .add(PacketKind::PIP, 0xb000)
      .add(PacketKind::VMCS, 0x5000)
      .tip(0x2000)
      .end(0x2001);
  const std::vector<Event> got = news(scene.decode());
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].kind, EventKind::ASYNC_BRANCH);
  EXPECT_EQ(got[1].kind, EventKind::ASYNC_VMCS);
  EXPECT_EQ(got[2].kind, EventKind::ASYNC_PAGING);
  EXPECT_EQ(got[2].ip, 0x2000u);
}

TEST(Transactions, BeginAndCommit) {
  Scene scene(nops());
  scene.begin().add(PacketKind::MODE_TSX, 1).fup(0x1002).add(PacketKind::MODE_TSX, 0).fup(0x1004).end(0x1005);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.blocks.size(), 3u);
  EXPECT_EQ(rows.blocks[0].flags, 0);
  EXPECT_EQ(rows.blocks[1].flags, IN_TX);
  EXPECT_EQ(rows.blocks[2].flags, 0);
  EXPECT_EQ(news(rows)[0].kind, EventKind::TSX_BEGIN);
  EXPECT_EQ(news(rows)[1].kind, EventKind::TSX_COMMIT);
}

TEST(Transactions, AbortBranchesToHandler) {
  Scene scene(nops());
  scene.begin()
      .add(PacketKind::MODE_TSX, 1)
      .fup(0x1001)
      .add(PacketKind::MODE_TSX, 2)
      .fup(0x1003)
      .tip(0x1008)
      .end(0x1009);
  const Collect rows = scene.decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1002, 0x1008}));
  EXPECT_EQ(rows.branches[0].kind, BranchKind::TX_ABORT);
  EXPECT_EQ(rows.branches[0].from_ip, 0x1003u);
  EXPECT_EQ(rows.branches[0].to_ip, 0x1008u);
  EXPECT_EQ(news(rows)[1].kind, EventKind::TSX_ABORT);
}

TEST(Overflow, ResumesAtFup) {
  Scene scene(nops());
  scene.begin().ovf();
  const std::uint64_t ovf = scene.last;
  scene.add(PacketKind::MTC, 1).fup(0x1008);
  const std::uint64_t fup = scene.last;
  const Collect rows = scene.end(0x100a).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1008, 0x1009}));
  EXPECT_EQ(news(rows)[0].kind, EventKind::OVERFLOW);
  EXPECT_EQ(news(rows)[0].ip, 0x1008u);
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::OVERFLOW);
  EXPECT_EQ(rows.gaps[0].begin, ovf);
  EXPECT_EQ(rows.gaps[0].end, fup);
  EXPECT_EQ(rows.gaps[0].from_ip, 0x1000u);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x1008u);
  EXPECT_TRUE(rows.errors.empty());
}

TEST(Overflow, ResolvesWhilePacketsAreDisabled) {
  const Collect rows = Scene(nops()).begin().ovf().pge(0x1004).end(0x1005).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1004}));
  EXPECT_EQ(news(rows)[0].flags & EV_IP_KNOWN, 0);
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].to_ip, 0x1004u);
}

TEST(Overflow, EmitsPendingEventsWithoutIp) {
  Scene scene(nops());
  scene.begin().add(PacketKind::PTW, 5, 0, Packet::IP_BIT).ovf().fup(0x1008).end(0x1009);
  const std::vector<Event> got = news(scene.decode());
  EXPECT_EQ(got[0].kind, EventKind::PTWRITE);
  EXPECT_EQ(got[1].kind, EventKind::OVERFLOW);
}

TEST(TraceStop, OpensGap) {
  Scene scene(nops());
  const Collect rows = scene.begin().end(0x1001).add(PacketKind::TRACE_STOP).pge(0x1005).end(0x1006).decode();
  EXPECT_EQ(news(rows)[1].kind, EventKind::STOP);
  ASSERT_EQ(rows.gaps.size(), 1u);
  EXPECT_EQ(rows.gaps[0].cause, GapCause::TRACE_STOP);
}

// 1000 nop; 1001 ptwrite eax; 1005 nop
const std::vector<std::uint8_t> kPtwrite{0x90, 0xf3, 0x0f, 0xae, 0xe0, 0x90, 0x90};

TEST(Ptwrite, BindsToNextPtwrite) {
  const Collect rows = Scene(kPtwrite).begin().add(PacketKind::PTW, 0x1234, 0).end(0x1006).decode();
  const Event row = news(rows)[0];
  EXPECT_EQ(row.kind, EventKind::PTWRITE);
  EXPECT_EQ(row.payload, 0x1234u);
  EXPECT_EQ(row.payload2, 4u);
  EXPECT_EQ(row.ip, 0x1001u);
  EXPECT_EQ(rows.blocks[0].insns.size(), 2u);
}

TEST(Ptwrite, BindsToItsFup) {
  const Collect rows = Scene(kPtwrite)
                           .begin()
                           .add(PacketKind::PTW, 0x1234, 1, Packet::IP_BIT)
                           .fup(0x1001)
                           .end(0x1006)
                           .decode();
  const Event row = news(rows)[0];
  EXPECT_EQ(row.payload2, 8u);
  EXPECT_EQ(row.ip, 0x1001u);
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1005}));
  EXPECT_EQ(rows.branches.size(), 1u);  // that FUP begins no asynchronous branch
}

TEST(Power, EmitsSleepEventsInOrder) {
  Scene scene(nops());
  scene.begin().add(PacketKind::MWAIT, 0x50, 1).add(PacketKind::PWRE, 0x21, 0, Packet::HW);
  scene.add(PacketKind::EXSTOP, 0, 0, Packet::IP_BIT).fup(0x1002).add(PacketKind::PWRX, 0x23, 5).end(0x1003);
  const std::vector<Event> got = news(scene.decode());
  ASSERT_EQ(got.size(), 5u);
  EXPECT_EQ(got[0].kind, EventKind::MWAIT);
  EXPECT_EQ(got[0].payload, 0x50u);
  EXPECT_EQ(got[0].payload2, 1u);
  EXPECT_EQ(got[0].ip, 0x1002u);
  EXPECT_EQ(got[1].kind, EventKind::EXSTOP);
  EXPECT_EQ(got[2].kind, EventKind::PWRE);
  EXPECT_EQ(got[2].payload, 0x21u);
  EXPECT_EQ(got[2].flags, EV_HW);
  EXPECT_EQ(got[3].kind, EventKind::PWRX);
  EXPECT_EQ(got[3].payload2, 5u);
}

struct CfeCase {
  std::uint64_t type;
  EventKind kind;
  bool vector;
};

class CfeTypes : public testing::TestWithParam<CfeCase> {};

TEST_P(CfeTypes, WithPacketsDisabledAreAlone) {
  const CfeCase want = GetParam();
  const std::vector<Event> got = news(Scene().begin_off().add(PacketKind::CFE, want.type, 33).decode());
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].kind, want.kind);
  EXPECT_EQ(got[0].flags, want.vector ? EV_PAYLOAD_KNOWN : 0);
  if (want.vector) {
    EXPECT_EQ(got[0].payload, 33u);
  }
}

TEST_P(CfeTypes, WithFupBindToIt) {
  const CfeCase want = GetParam();
  const bool has_ip = want.kind != EventKind::RSM && want.kind != EventKind::SIPI;
  Scene scene(nops());
  const std::vector<std::uint8_t> code{0x90, 0x90, 0x90};
  scene.put(0x3000, code);
  scene.psb().mode(64).fup(0x3000).psbend();
  const std::vector<Event> got =
      news(scene.add(PacketKind::CFE, want.type, 33, Packet::IP_BIT).fup(0x3001).end(0x3002).decode());
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].kind, want.kind);
  EXPECT_EQ(got[0].ip, has_ip ? 0x3001u : 0u);
  EXPECT_EQ(got[1].kind, EventKind::ASYNC_DISABLED);
}

INSTANTIATE_TEST_SUITE_P(
    All, CfeTypes,
    testing::Values(CfeCase{1, EventKind::INTERRUPT, true}, CfeCase{2, EventKind::IRET, false},
                    CfeCase{3, EventKind::SMI, false}, CfeCase{4, EventKind::RSM, false},
                    CfeCase{5, EventKind::SIPI, true}, CfeCase{6, EventKind::INIT, false},
                    CfeCase{7, EventKind::VMENTRY, false}, CfeCase{8, EventKind::VMEXIT, false},
                    CfeCase{9, EventKind::VMEXIT, true}, CfeCase{10, EventKind::SHUTDOWN, false},
                    CfeCase{12, EventKind::UINTR, true}, CfeCase{13, EventKind::UIRET, false},
                    CfeCase{14, EventKind::SWINTR, true}, CfeCase{15, EventKind::SYSCALL, false}));

TEST(EventTrace, EvdBelongsToNextCfe) {
  Scene scene(nops());
  scene.put(0x2000, nops());
  scene.begin()
      .add(PacketKind::EVD, 0, 0xdead000)
      .add(PacketKind::CFE, 1, 14)
      .fup(0x1002)
      .tip(0x2000)
      .end(0x2001);
  const std::vector<Event> got = news(scene.decode());
  EXPECT_EQ(got[0].kind, EventKind::INTERRUPT);
  EXPECT_EQ(got[0].payload, 14u);
  EXPECT_EQ(got[0].payload2, 0xdead000u);
  EXPECT_EQ(got[0].flags, EV_IP_KNOWN | EV_PAYLOAD_KNOWN | EV_CR2_KNOWN);
  EXPECT_EQ(got[1].kind, EventKind::ASYNC_BRANCH);  // the same FUP
}

TEST(EventTrace, VmExitHasReasonAndQualification) {
  Scene scene;
  scene.begin_off().add(PacketKind::EVD, 1, 0x11).add(PacketKind::EVD, 2, 0x22).add(PacketKind::CFE, 9, 3);
  const std::vector<Event> got = news(scene.decode());
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].kind, EventKind::VMEXIT);
  EXPECT_EQ(got[0].payload2, 0x22u);
  EXPECT_EQ(got[0].payload3, 0x11u);
  EXPECT_EQ(got[0].flags, EV_PAYLOAD_KNOWN | EV_CR2_KNOWN | EV_QUALIFICATION_KNOWN);
}

TEST(EventTrace, EvdWithoutCfeIsRow) {
  Scene scene;
  const Collect rows =
      scene.begin_off().add(PacketKind::EVD, 0, 9).add(PacketKind::CFE, 3).decode(Resync::IP);
  EXPECT_EQ(news(rows)[0].kind, EventKind::EVENT_DATA);
  EXPECT_EQ(news(rows)[0].payload2, 9u);
  ASSERT_EQ(rows.errors.size(), 1u);
  EXPECT_EQ(rows.errors[0].code, base::Status::UNEXPECTED_PACKET);
}

TEST(EventTrace, InterruptFlagIsBoundToItsPacket) {
  Scene scene(nops());
  const Collect rows =
      scene.begin().mode(64, true).fup(0x1002).mode(64, true).fup(0x1003).end(0x1004).decode();
  const std::vector<Event> got = news(rows);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].kind, EventKind::IFLAG);
  EXPECT_EQ(got[0].payload, 1u);
  EXPECT_EQ(got[0].ip, 0x1002u);
  EXPECT_EQ(rows.branches.size(), 1u);
}

// What the IFLAG rows say.
std::vector<std::uint64_t> interrupt_flags(const Collect& rows) {
  std::vector<std::uint64_t> out;
  for (const Event& row : rows.events) {
    if (row.kind == EventKind::IFLAG) out.push_back(row.payload);
  }
  return out;
}

using Flags = std::vector<std::uint64_t>;
constexpr std::uint64_t kEventEn = std::uint64_t{1} << 31U;

TEST(EventTrace, InterruptFlagIsEmittedWithEventTrace) {
  Scene scene(nops());
  scene.begin().mode(32).tip(0x1004);  // mode and flag in one packet
  scene.begin(0x1004, 32).end(0x1006);
  scene.configuration.rtit_ctl_known = true;
  scene.configuration.rtit_ctl = kEventEn;
  EXPECT_EQ(interrupt_flags(scene.decode()), (Flags{0, 0}));
  scene.configuration.rtit_ctl = ~kEventEn & 0xffffffff;
  EXPECT_EQ(interrupt_flags(scene.decode()), Flags{});
  scene.configuration.rtit_ctl_known = false;
  scene.configuration.rtit_ctl = kEventEn;  // means nothing
  EXPECT_EQ(interrupt_flags(scene.decode()), Flags{});
}

TEST(EventTrace, InterruptFlagIsDroppedWithoutEventTrace) {
  Scene scene(nops());
  scene.begin().mode(64, true).fup(0x1002).end(0x1004);
  scene.configuration.rtit_ctl_known = true;
  const Collect rows = scene.decode();
  EXPECT_EQ(interrupt_flags(rows), Flags{});
  EXPECT_EQ(rows.branches.size(), 1u);  // the end: the FUP belongs to MODE.Exec all the same
  EXPECT_EQ(rows.ips.size(), 4u);
}

TEST(EventTrace, CfeProvesInterruptFlagTracing) {
  Scene flag(nops());
  flag.begin().mode(64, true).fup(0x1002).mode(64).fup(0x1003);
  flag.begin(0x1003).end(0x1004);
  EXPECT_EQ(interrupt_flags(flag.decode()), (Flags{1, 0, 0}));
  Scene header(nops());
  header.psb().mode(64, true).fup(0x1000).psbend().begin(0x1001).end(0x1002);
  EXPECT_EQ(interrupt_flags(header.decode()), (Flags{1, 0}));
  Scene event(nops());
  event.begin().add(PacketKind::CFE, 4).begin(0x1002).end(0x1003);  // RSM
  EXPECT_EQ(interrupt_flags(event.decode()), Flags{0});
}

TEST(Trigger, CountsFromLastIp) {
  Scene scene(nops());
  scene.begin().add(PacketKind::TRIG, 0x1a, 3, Packet::ICNT | Packet::MULT);
  scene.add(PacketKind::TRIG, 0x1b, 0, Packet::ICNT | Packet::IP_BIT)
      .fup(0x1005)
      .add(PacketKind::TRIG, 0x1c)
      .end(0x1006);
  const std::vector<Event> got = news(scene.decode());
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].kind, EventKind::TRIG);
  EXPECT_EQ(got[0].payload, 0x1au);
  EXPECT_EQ(got[0].ip, 0x1003u);
  EXPECT_EQ(got[0].flags, EV_IP_KNOWN | EV_ICNT_KNOWN | EV_MULT);
  EXPECT_EQ(got[1].ip, 0x1005u);
  EXPECT_EQ(got[2].flags, 0);
}

TEST(Pebs, BlocksBindToTheirFup) {
  Scene scene(nops());
  scene.begin().add(PacketKind::BBP, 4, 1).add(PacketKind::BIP, 2, 0x55, 0, true);
  scene.raw({0x02, 0xb3}).fup(0x1002).end(0x1003);  // BEP with IP
  const Collect rows = scene.decode();
  const std::vector<Event> got = news(rows);
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].kind, EventKind::PEBS_BEGIN);
  EXPECT_EQ(got[0].payload, 4u);
  EXPECT_EQ(got[0].payload2, 4u);
  EXPECT_EQ(got[1].kind, EventKind::PEBS_ITEM);
  EXPECT_EQ(got[1].payload, 2u);
  EXPECT_EQ(got[1].payload2, 0x55u);
  EXPECT_EQ(got[2].kind, EventKind::PEBS_END);
  EXPECT_EQ(got[2].ip, 0x1002u);
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1002}));
}

TEST(Psb, RepeatedStateIsStatus) {
  Scene scene(nops());
  scene.psb().add(PacketKind::PIP, 0xc000).mode(64).add(PacketKind::MODE_TSX, 1).fup(0x1000);
  const Collect rows = scene.add(PacketKind::CBR, 20).add(PacketKind::MNT, 7).psbend().end(0x1001).decode();
  std::vector<EventKind> kinds;
  for (const Event& row : rows.events) kinds.push_back(row.kind);
  EXPECT_EQ(kinds, (std::vector<EventKind>{EventKind::ENABLED, EventKind::ASYNC_PAGING, EventKind::EXEC_MODE,
                                           EventKind::TSX_BEGIN, EventKind::CBR, EventKind::MNT,
                                           EventKind::ASYNC_DISABLED}));
  EXPECT_EQ(news(rows).size(), 2u);  // MNT and the end
  EXPECT_EQ(rows.blocks[0].flags, IN_TX);
}

TEST(Psb, WalksToItsFup) {
  Scene scene(nops());
  const Collect rows = scene.begin().psb().mode(64).fup(0x1003).psbend().end(0x1005).decode();
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1002, 0x1003, 0x1004}));
  EXPECT_TRUE(rows.errors.empty());
}

// The recorder inserted the packets: no instruction of the program wrote them.
TEST(Ptwrite, HasNoIpIfRecorderWroteIt) {
  Scene scene(nops());
  scene.configuration.rtit_ctl_known = true;
  const Collect rows = scene.begin().add(PacketKind::PTW, 7, 1).end(0x1003).decode();
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1001, 0x1002}));
  EXPECT_NE(rows.log.find("event 18"), std::string::npos);
  scene.configuration.rtit_ctl = std::uint64_t{1} << 12U;  // PTWEn
  EXPECT_FALSE(scene.decode().errors.empty());
}

TEST(Ticks, FollowBranchThatUsedPacket) {
  Scene scene({0x74, 0, 0x74, 0, 0x90});  // jz 1002; jz 1004; nop
  scene.options.ticks = true;
  const Collect rows = scene.begin().add(PacketKind::TSC, 77).tnt("nn").end(0x1004).decode();
  EXPECT_NE(rows.log.find("branch 1000 1002\nevent 21\nblock 1002"), std::string::npos) << rows.log;
}

}  // namespace
}  // namespace ptkit::flow
