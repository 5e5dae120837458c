// The trace unit as a whole: enabling, status, and case by case what filters let out.
#include <gtest/gtest.h>

#include "unit/support/units/machine.h"

namespace ptkit::ptmodel {
namespace {

using namespace test;

constexpr std::uint64_t kCr3 = 0x5000;
constexpr std::uint64_t kOtherCr3 = 0x6000;
constexpr std::uint64_t kKernelIp = 0xffff'8000'0010'0000;

ProcessorState user(std::uint64_t cr3 = kCr3) {
  ProcessorState state;
  state.cpl = 3;
  state.cr3 = cr3;
  return state;
}
ProcessorState kernel(std::uint64_t cr3 = kCr3) {
  ProcessorState state = user(cr3);
  state.cpl = 0;
  return state;
}

// Starts at 0x1000 in user mode, unless told otherwise; then something happens; then TraceEn is cleared at
// 0x9000.
struct Filtering : testing::Test {
  void range(unsigned n, unsigned cfg, std::uint64_t first, std::uint64_t last) {
    machine.write(PT_MSR_RTIT_ADDR0_A + 2 * n, first);
    machine.write(PT_MSR_RTIT_ADDR0_A + 2 * n + 1, last);
    ranges |= std::uint64_t{cfg} << (32 + 4 * n);
  }
  void traced_range() { range(0, PT_ADDR_CFG_FILTER, 0x1000, 0x1fff); }
  void start(std::uint64_t ctl, const ProcessorState& state = user(), std::uint64_t ip = 0x1000) {
    unit.set_state(state);
    machine.start(ctl | kBranches | ranges, ip);
  }
  // Without the MODE.Exec and TIP.PGE 1000 that it began with.
  std::string rest() {
    machine.end(0x9000);
    std::string all = machine.packets();
    const std::string begin = "MODE.Exec 40,1\nTIP.PGE 1000\n";
    if (all.rfind(begin, 0) == 0) all.erase(0, begin.size());
    return all;
  }

  Machine machine;
  TraceUnit& unit = machine.unit;
  std::uint64_t ranges = 0;
};

// ---- TraceEn

TEST_F(Filtering, BeginsAtTheNextInstructionAndEndsAtTheWrmsr) {
  start(kUser);
  machine.end(0x1234);
  EXPECT_EQ(machine.packets(), "MODE.Exec 40,1\nTIP.PGE 1000\nFUP 1234\nTIP.PGD -\n");
}

TEST_F(Filtering, NothingComesOutWhileTraceEnIsClear) {
  unit.set_state(user());
  unit.conditional(true, 0x1000);
  unit.interrupt(0x1000, 0x2000, kernel());
  unit.ptwrite(1, true, 0x1000);
  unit.begin_overflow();
  unit.end_overflow(0x1000);
  EXPECT_FALSE(unit.watching());
  EXPECT_EQ(unit.state().cpl, 0);
  EXPECT_EQ(machine.offset(), 0U);
}

TEST_F(Filtering, StatusShowsTheEnables) {
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS), 0U);
  traced_range();
  start(kUser);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS) & 7, 7U);
  unit.jump(0x3000);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS) & 7, 6U);
  unit.far_transfer(0x1000, kernel());
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS) & 7, 5U);
  machine.end(0x1010);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS) & 7, 0U);
}

TEST_F(Filtering, PacketByteCntDecidesOverThePsb) {
  start(kUser);
  machine.end(0x1010);
  const std::uint64_t count = machine.read(PT_MSR_RTIT_STATUS) >> 32;
  EXPECT_EQ(count, machine.offset());
  machine.start(kUser | kBranches, 0x2000);
  machine.end(0x2010);
  EXPECT_EQ(machine.packets(),
            "MODE.Exec 40,1\nTIP.PGE 1000\nFUP 1010\nTIP.PGD -\nMODE.Exec 40,1\nTIP.PGE 2000\nFUP "
            "2010\nTIP.PGD -\n");
  machine.write(PT_MSR_RTIT_STATUS, 0);
  const std::uint64_t before = machine.offset();
  machine.start(kUser | kBranches, 0x3000);
  EXPECT_EQ(decode(machine.platform.read(Machine::kBuffer + before, machine.offset() - before))[0].kind,
            PacketKind::PSB);
}

TEST(TraceUnit, ThePsbPeriodIsKeptAcrossStops) {
  Machine machine;
  machine.unit.set_state(user());
  unsigned psbs = 0;
  for (int i = 0; i < 1000; ++i) {
    machine.start(kUser | kBranches, 0x1000);
    machine.unit.jump_indirect(0x5000 + static_cast<std::uint64_t>(i) * 0x10000);
    machine.end(0x2000);
  }
  const auto packets = decode(machine.bytes());
  std::uint64_t last = 0;
  for (const Packet& packet : packets) {
    if (packet.kind != PacketKind::PSB) continue;
    if (++psbs > 1) {
      EXPECT_NEAR(static_cast<double>(packet.offset - last), 2048, 64);
    }
    last = packet.offset;
  }
  EXPECT_NEAR(psbs, static_cast<double>(machine.offset()) / 2048, 2);
}

TEST(TraceUnit, WithoutConfigurablePsbsEveryStartHasOne) {
  Capabilities can;
  can.leaf_14_ebx &= ~(1U << PT_CPUID_14_EBX_PSB_CYC);
  Machine machine(can);
  machine.unit.set_state(user());
  for (int i = 0; i < 3; ++i) {
    machine.start(kUser | kBranches, 0x1000);
    machine.end(0x1010);
    EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS), 0U);
  }
  unsigned psbs = 0;
  for (const Packet& packet : decode(machine.bytes())) psbs += packet.kind == PacketKind::PSB;
  EXPECT_EQ(psbs, 3U);
}

TEST(TraceUnit, LongPsbPeriodsAreCountedInLargerSteps) {
  for (std::uint64_t frequency = 0; frequency < 16; ++frequency) {
    SCOPED_TRACE(frequency);
    Machine machine;
    machine.unit.set_state(user());
    machine.write(PT_MSR_RTIT_STATUS, std::uint64_t{0x1fff0} << 32);
    machine.start(kUser | kBranches | frequency << PT_CTL_PSB_FREQ_SHIFT, 0x1000);
    const bool due = frequency < 6;  // from there on so many bytes, or steps, are less than a period
    const auto packets = decode(machine.bytes());
    EXPECT_EQ(std::any_of(packets.begin(), packets.end(),
                          [](const Packet& packet) { return packet.kind == PacketKind::PSB; }),
              due);
  }
}

TEST(TraceUnit, ErrorAndStoppedHoldTheTriggerUntilSoftwareClearsThem) {
  for (const unsigned status : {PT_STATUS_ERROR + 0U, PT_STATUS_STOPPED + 0U}) {
    Machine machine;
    machine.write(PT_MSR_RTIT_STATUS, bit(status));
    machine.start(kUser | kBranches, 0x1000);
    EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS), bit(status));
    machine.unit.far_transfer(0x1000, user());
    machine.end(0x1000);
    EXPECT_EQ(machine.offset(), 0U);
    EXPECT_EQ(machine.unit.write_msr(PT_MSR_RTIT_STATUS, 0), MsrResult::OK);
    machine.start(kUser | kBranches, 0x1000);
    EXPECT_TRUE(machine.status(PT_STATUS_TRIGGER_EN));
  }
}

TEST(TraceUnit, EveryCombinationOfTimingFieldsComesOut) {
  Machine machine;
  machine.unit.set_state(user());
  machine.start(kUser | kBranches | bit(PT_CTL_TSC_EN) | bit(PT_CTL_MTC_EN) | 4 << PT_CTL_MTC_FREQ_SHIFT |
                    bit(PT_CTL_CYC_EN) | 3 << PT_CTL_CYC_THRESH_SHIFT,
                0x1000);
  for (std::uint64_t i = 1; i < 100; ++i) {
    machine.unit.set_time(1000 + 200 * i, 1000 + 300 * i);
    machine.unit.jump_indirect(0x1000 + 16 * i);
  }
  machine.end(0x1000);
  unsigned counts[256] = {};
  for (const Packet& packet : decode(machine.bytes())) {
    ++counts[static_cast<unsigned>(packet.kind)];
    if (packet.kind == PacketKind::CYC) {
      EXPECT_GE(packet.payload, 4U);
    }
  }
  EXPECT_EQ(counts[static_cast<unsigned>(PacketKind::TSC)], 1U);
  EXPECT_EQ(counts[static_cast<unsigned>(PacketKind::TMA)], 1U);
  EXPECT_EQ(counts[static_cast<unsigned>(PacketKind::CYC)], 99U + 15U);
  EXPECT_EQ(counts[static_cast<unsigned>(PacketKind::MTC)],
            15U);  // at multiples of 84 * 16, from 1000 to 20800
}

// ---- CPL

TEST_F(Filtering, SystemCallOutOfAUserTraceHidesItsTarget) {
  start(kUser);
  unit.far_transfer(kKernelIp, kernel());
  EXPECT_FALSE(unit.watching());
  unit.jump_indirect(kKernelIp + 0x10);
  unit.conditional(true, kKernelIp + 0x20);
  unit.mov_cr3(kOtherCr3, kKernelIp + 0x23);
  unit.mov_cr3(kCr3, kKernelIp + 0x26);
  unit.far_transfer(0x1002, user());
  EXPECT_EQ(rest(), "TIP.PGD -\nTIP.PGE 1002\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, InterruptOutOfAUserTraceHidesItsTarget) {
  start(kUser);
  unit.interrupt(0x1007, kKernelIp, kernel());
  unit.far_transfer(0x1007, user());
  EXPECT_EQ(rest(), "FUP 1007\nTIP.PGD -\nTIP.PGE 1007\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, BothLevelsAreTraced) {
  start(kUser | kOs);
  unit.interrupt(0x1007, kKernelIp, kernel());
  unit.mov_cr3(kOtherCr3 | 0xfff, kKernelIp + 3);
  unit.far_transfer(0x1007, user(kOtherCr3));
  EXPECT_EQ(rest(), "FUP 1007\nTIP ffff800000100000\nPIP 6000\nTIP 1007\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, KernelOnlyTracesHideUserCode) {
  start(kOs, kernel(), kKernelIp);
  unit.far_transfer(0x1000, user());
  unit.jump_indirect(0x1010);
  unit.interrupt(0x1020, kKernelIp, kernel());
  EXPECT_EQ(
      rest(),
      "MODE.Exec 40,1\nTIP.PGE ffff800000100000\nTIP.PGD -\nTIP.PGE ffff800000100000\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, EveryLevelAboveZeroIsUser) {
  for (std::uint8_t cpl = 0; cpl < 4; ++cpl) {
    for (const std::uint64_t ctl : {std::uint64_t{0}, kOs, kUser, kOs | kUser}) {
      ProcessorState state = user();
      state.cpl = cpl;
      start(ctl, state);
      EXPECT_EQ(unit.context_enabled(), (ctl & (cpl == 0 ? kOs : kUser)) != 0);
      machine.end(0x1000);
    }
  }
}

TEST_F(Filtering, AModeIsToldWithTheTransferIntoIt) {
  start(kUser | kOs);
  ProcessorState legacy = user();
  legacy.cs_l = false;
  legacy.cs_d = true;
  unit.far_transfer(0x2000, legacy);
  unit.interrupt(0x2001, kKernelIp, kernel());
  EXPECT_EQ(
      rest(),
      "MODE.Exec 20,2\nTIP 2000\nFUP 2001\nMODE.Exec 40,1\nTIP ffff800000100000\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, TheInterruptFlagIsToldWithEventTrace) {
  start(kUser | bit(PT_CTL_EVENT_EN));
  ProcessorState state = user();
  state.interrupt_flag = true;
  unit.change_state(state, 0x1001);
  unit.change_state(state, 0x1002);
  EXPECT_EQ(rest(), "MODE.Exec 40,5\nFUP 1001\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, APagingModeMayChangeTheContext) {
  machine.write(PT_MSR_RTIT_CR3_MATCH, kCr3);
  ProcessorState state = kernel(kCr3 | 0x20);
  start(kOs | bit(PT_CTL_CR3_FILTER), state);
  state.pae = true;
  unit.change_state(state, 0x1003);
  EXPECT_FALSE(unit.context_enabled());
  state.pae = false;
  unit.change_state(state, 0x1006);
  EXPECT_EQ(rest(), "TIP.PGD -\nTIP.PGE 1006\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, WithPaePagingAPipHasTheLowBits) {
  ProcessorState state = kernel();
  state.pae = true;
  start(kOs, state);
  unit.mov_cr3(0x5fff, 0x1003);
  EXPECT_EQ(rest(), "PIP 5fe0\nFUP 9000\nTIP.PGD -\n");
}

// ---- CR3

struct ByCr3 : Filtering {
  void start(std::uint64_t ctl, const ProcessorState& state = kernel(), std::uint64_t match = kCr3) {
    machine.write(PT_MSR_RTIT_CR3_MATCH, match);
    Filtering::start(ctl | bit(PT_CTL_CR3_FILTER), state);
  }
};

TEST_F(ByCr3, MovCr3LeavesWithoutPipAndEntersWithOne) {
  start(kOs | kUser);
  unit.mov_cr3(kOtherCr3, 0x1003);  // case 5c
  unit.mov_cr3(0x7000, 0x1006);     // 5a
  unit.jump_indirect(0x1100);
  unit.mov_cr3(kCr3 | 1, 0x1103);  // 5b; PCID does not count
  unit.mov_cr3(kCr3, 0x1106);      // 5d
  EXPECT_EQ(rest(), "TIP.PGD -\nPIP 5000\nTIP.PGE 1103\nPIP 5000\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(ByCr3, UserTracesSeeNoPip) {
  start(kUser, user());
  unit.far_transfer(kKernelIp, kernel());
  unit.mov_cr3(kOtherCr3, kKernelIp);
  unit.far_transfer(0x1000, user(kOtherCr3));
  unit.jump_indirect(0x1010);
  unit.interrupt(0x1010, kKernelIp, kernel(kOtherCr3));
  unit.mov_cr3(kCr3, kKernelIp);
  unit.far_transfer(0x1002, user());
  EXPECT_EQ(rest(), "TIP.PGD -\nTIP.PGE 1002\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(ByCr3, ThePsbOfAnotherProcessTellsNoCr3) {
  start(kOs | kUser, kernel(kOtherCr3));
  machine.end(0x1000);
  for (const Packet& packet : decode(machine.bytes())) EXPECT_NE(packet.kind, PacketKind::PIP);
  machine.write(PT_MSR_RTIT_STATUS, 0);
  unit.set_state(kernel());
  machine.start(kOs | kUser | kBranches | bit(PT_CTL_CR3_FILTER), 0x1000);
  unsigned pips = 0;
  for (const Packet& packet : decode(machine.bytes())) pips += packet.kind == PacketKind::PIP;
  EXPECT_EQ(pips, 1U);
}

TEST_F(ByCr3, ComparesTheAddressOnly) {
  const auto matches = [&](std::uint64_t cr3, std::uint64_t match, bool pae) {
    ProcessorState state = kernel(cr3);
    state.pae = pae;
    start(kOs, state, match);
    const bool on = unit.context_enabled();
    machine.end(0x1000);
    return on;
  };
  for (unsigned number = 0; number < 64; ++number) {
    EXPECT_EQ(matches(kCr3 ^ bit(number), kCr3, false), number < 12) << number;
    EXPECT_EQ(matches(kCr3 ^ bit(number), kCr3, true), number < 5) << number;
  }
  EXPECT_TRUE(matches(kCr3, kCr3 | 0xfe0, false));
  EXPECT_FALSE(matches(kCr3, kCr3 | 0xfe0, true));
}

TEST_F(ByCr3, ATaskSwitchLoadsCr3BetweenItsFupAndItsTip) {
  Filtering::start(kOs | kUser);
  unit.interrupt(0x1001, 0x2000, kernel(kOtherCr3));
  unit.far_transfer(0x3000, user(kCr3));
  EXPECT_EQ(rest(), "FUP 1001\nPIP 6000\nTIP 2000\nPIP 5000\nTIP 3000\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(ByCr3, ATaskSwitchInAndOut) {
  start(kOs | kUser, user());
  unit.far_transfer(0x2000, user(kOtherCr3));
  unit.far_transfer(0x3000, user(kCr3));
  unit.interrupt(0x3001, 0x2000, kernel(kOtherCr3));
  unit.interrupt(0x2001, 0x3000, user(kCr3));
  EXPECT_EQ(rest(),
            "TIP.PGD -\nPIP 5000\nTIP.PGE 3000\nFUP 3001\nTIP.PGD -\nPIP 5000\nTIP.PGE 3000\nFUP "
            "9000\nTIP.PGD -\n");
}

// ---- address ranges

TEST_F(Filtering, BothEndsOfARangeBelongToIt) {
  traced_range();
  start(kUser);
  for (const std::uint64_t ip : {0x1fffU, 0x2000U, 0x1000U, 0xfffU}) unit.jump(ip);
  EXPECT_EQ(rest(), "TIP.PGD 2000\nTIP.PGE 1000\nTIP.PGD fff\n");
}

TEST_F(Filtering, EveryKindOfBranchLeavesAndEnters) {
  traced_range();
  start(kUser);
  unit.conditional(false, 0x1010);
  unit.conditional(true, 0x3000);
  EXPECT_TRUE(unit.watching());
  unit.conditional(true, 0x1100);
  unit.jump(0x3000);
  unit.jump(0x1200);
  unit.call(0x1205, 0x3000);
  unit.call(0x3005, 0x1300);
  unit.jump_indirect(0x3000);
  unit.jump_indirect(0x1400);
  unit.call_indirect(0x1402, 0x3000);
  unit.call_indirect(0x3002, 0x1500);
  unit.ret(0x3000);
  unit.ret(0x1600);
  unit.far_transfer(0x3000, user());
  unit.far_transfer(0x1700, user());
  unit.interrupt(0x1701, 0x3000, user());
  unit.interrupt(0x3001, 0x1800, user());
  unit.jump_indirect(0x1810);
  std::string expected = "TNT.8 .\n";
  for (int i = 1; i < 8; ++i) expected += "TIP.PGD 3000\nTIP.PGE 1" + std::to_string(i) + "00\n";
  expected += "FUP 1701\nTIP.PGD 3000\nTIP.PGE 1800\nTIP 1810\nFUP 9000\nTIP.PGD -\n";
  EXPECT_EQ(rest(), expected);
}

TEST_F(Filtering, GoingStraightOnChangesNothing) {
  traced_range();
  start(kUser);
  unit.conditional(false, 0x2004);  // left at its end
  unit.conditional(false, 0x2008);
  unit.jump(0x3000);
  unit.conditional(false, 0x1004);  // entered from before it
  unit.conditional(false, 0x1008);
  unit.conditional(true, 0x1100);
  EXPECT_EQ(rest(), "TNT.8 ..\nTIP.PGD 3000\nTIP.PGE 1100\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, FourRangesTogether) {
  for (unsigned n = 0; n < 4; ++n) range(n, PT_ADDR_CFG_FILTER, 0x1000 * (n + 1), 0x1000 * (n + 1) + 0xff);
  start(kUser);
  for (const std::uint64_t ip : {0x2000U, 0x3000U, 0x4000U, 0x5000U}) unit.jump_indirect(ip);
  EXPECT_EQ(rest(), "TIP 2000\nTIP 3000\nTIP 4000\nTIP.PGD 5000\n");
}

TEST_F(Filtering, ARangeThatIsOffOrEmptyTracesNothingMore) {
  range(0, PT_ADDR_CFG_OFF, 0x1000, 0x1fff);
  range(1, PT_ADDR_CFG_FILTER, 0x3000, 0x2000);
  start(kUser);
  unit.jump(0x2800);
  EXPECT_EQ(rest(), "");
}

TEST_F(Filtering, TheFilterIsKnownOutsideOfTheContext) {
  traced_range();
  start(kOs | kUser | bit(PT_CTL_CR3_FILTER), kernel(kOtherCr3));  // CR3_MATCH is 0
  EXPECT_TRUE(unit.watching());
  unit.jump(0x5000);
  unit.mov_cr3(0, 0x5003);  // case 5f
  unit.jump(0x1000);
  EXPECT_EQ(rest(), "PIP 0\nMODE.Exec 40,1\nTIP.PGE 1000\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, TransfersOutsideOfTheRangeTellCr3) {
  traced_range();
  start(kOs | kUser);
  unit.interrupt(0x1001, 0x5000, kernel(kOtherCr3));  // case 11d
  unit.far_transfer(0x6000, user(kCr3));              // case 10f
  unit.far_transfer(0x1100, user(kOtherCr3));         // case 10b
  EXPECT_EQ(rest(),
            "FUP 1001\nPIP 6000\nTIP.PGD 5000\nPIP 5000\nPIP 6000\nTIP.PGE 1100\nFUP 9000\nTIP.PGD -\n");
}

// ---- IP payloads: linear addresses, or offsets in the code segment

struct Payloads : testing::TestWithParam<bool> {
  static constexpr std::uint32_t kBase = 0x7'0000;
  static Capabilities capabilities() {
    Capabilities out;
    if (!GetParam()) out.leaf_14_ecx &= ~(1U << PT_CPUID_14_ECX_LIP);
    return out;
  }
  static ProcessorState segmented(bool wide, std::uint32_t base = kBase) {
    ProcessorState state = user();
    state.cs_l = false;
    state.cs_d = wide;
    state.cs_base = base;
    return state;
  }
  // Traces [0x71000, 0x71fff]; begins at 0x71000.
  void start(const ProcessorState& state) {
    machine.write(PT_MSR_RTIT_ADDR0_A, kBase + 0x1000);
    machine.write(PT_MSR_RTIT_ADDR0_A + 1, kBase + 0x1fff);
    unit.set_state(state);
    machine.start(kUser | kBranches | std::uint64_t{PT_ADDR_CFG_FILTER} << PT_CTL_ADDR0_CFG_SHIFT,
                  kBase + 0x1000);
  }
  std::string rest() {
    machine.end(kBase + 0x9000);
    return machine.packets();
  }
  static std::string either(const char* linear, const char* effective) {
    return GetParam() ? linear : effective;
  }

  Machine machine{capabilities()};
  TraceUnit& unit = machine.unit;
};

TEST_P(Payloads, FiltersCompareLinearAddresses) {
  for (const bool wide : {false, true}) {
    Machine own{capabilities()};
    own.write(PT_MSR_RTIT_ADDR0_A, kBase + 0x1000);
    own.write(PT_MSR_RTIT_ADDR0_A + 1, kBase + 0x1fff);
    own.unit.set_state(segmented(wide));
    own.start(kUser | kBranches | std::uint64_t{PT_ADDR_CFG_FILTER} << PT_CTL_ADDR0_CFG_SHIFT,
              kBase + 0x1000);
    for (const std::uint64_t offset : {0x1fffU, 0x2000U, 0x1000U, 0xfffU, 0x1800U})
      own.unit.jump_indirect(kBase + offset);
    own.end(kBase + 0x9000);
    const std::string mode = wide ? "MODE.Exec 20,2\n" : "MODE.Exec 10\n";
    EXPECT_EQ(own.packets(), mode + either("TIP.PGE 71000\nTIP 71fff\nTIP.PGD 72000\nTIP.PGE 71000\n"
                                           "TIP.PGD 70fff\nTIP.PGE 71800\nFUP 79000\nTIP.PGD -\n",
                                           "TIP.PGE 1000\nTIP 1fff\nTIP.PGD 2000\nTIP.PGE 1000\n"
                                           "TIP.PGD fff\nTIP.PGE 1800\nFUP 9000\nTIP.PGD -\n"));
  }
}

TEST_P(Payloads, SixtyFourBitCodeHasNoBase) {
  ProcessorState state = user();
  state.cs_base = kBase;
  start(state);
  unit.jump_indirect(kBase + 0x1010);
  EXPECT_EQ(rest(), "MODE.Exec 40,1\nTIP.PGE 71000\nTIP 71010\nFUP 79000\nTIP.PGD -\n");
}

TEST_P(Payloads, AnInterruptSaysWhereItCameFromInTheSegmentThatItLeaves) {
  start(segmented(true));
  unit.interrupt(kBase + 0x1010, kBase + 0x1800, segmented(true, kBase + 0x1000));
  unit.far_transfer(kBase + 0x1020, segmented(false));
  EXPECT_EQ(rest(), either("MODE.Exec 20,2\nTIP.PGE 71000\nFUP 71010\nTIP 71800\nMODE.Exec 10\nTIP 71020\n"
                           "FUP 79000\nTIP.PGD -\n",
                           "MODE.Exec 20,2\nTIP.PGE 1000\nFUP 1010\nTIP 800\nMODE.Exec 10\nTIP 1020\n"
                           "FUP 9000\nTIP.PGD -\n"));
}

TEST_P(Payloads, ReturnsAreCompressedAllTheSame) {
  start(segmented(true));
  unit.call(kBase + 0x1005, kBase + 0x1100);
  unit.ret(kBase + 0x1005);
  unit.ret(kBase + 0x1400);
  EXPECT_EQ(rest(), either("MODE.Exec 20,2\nTIP.PGE 71000\nTNT.8 !\nTIP 71400\nFUP 79000\nTIP.PGD -\n",
                           "MODE.Exec 20,2\nTIP.PGE 1000\nTNT.8 !\nTIP 1400\nFUP 9000\nTIP.PGD -\n"));
}

TEST_P(Payloads, AddressesWrapAtFourGigabytes) {
  ProcessorState state = segmented(true, 0xffff'0000);
  unit.set_state(state);
  machine.start(kUser | kBranches, 0x1000);  // offset 0x11000
  unit.jump_indirect(0xffff'2000);
  machine.end(0x1004);
  EXPECT_EQ(machine.packets(), either("MODE.Exec 20,2\nTIP.PGE 1000\nTIP ffff2000\nFUP 1004\nTIP.PGD -\n",
                                      "MODE.Exec 20,2\nTIP.PGE 11000\nTIP 2000\nFUP 11004\nTIP.PGD -\n"));
}

INSTANTIATE_TEST_SUITE_P(Lip, Payloads, testing::Bool(),
                         [](const auto& linear) { return linear.param ? "linear" : "effective"; });

// ---- TraceStop

TEST_F(Filtering, TraceStopEndsItWhenABranchLandsThere) {
  range(0, PT_ADDR_CFG_TRACE_STOP, 0x4000, 0x4000);
  start(kUser);
  unit.jump(0x3fff);
  unit.conditional(false, 0x4000);
  unit.conditional(true, 0x4000);
  EXPECT_TRUE(machine.status(PT_STATUS_STOPPED));
  EXPECT_FALSE(machine.status(PT_STATUS_TRIGGER_EN));
  EXPECT_FALSE(unit.watching());
  unit.jump_indirect(0x1000);
  EXPECT_EQ(rest(), "TNT.8 .\nTIP.PGD 4000\nTraceStop\n");
  EXPECT_TRUE(machine.status(PT_STATUS_STOPPED));
}

TEST_F(Filtering, TraceStopOutsideOfTheFilter) {
  traced_range();
  range(1, PT_ADDR_CFG_TRACE_STOP, 0x4000, 0x4fff);
  start(kUser);
  unit.jump(0x3000);
  unit.jump(0x4fff);
  EXPECT_EQ(rest(), "TIP.PGD 3000\nTraceStop\n");
}

TEST_F(Filtering, TraceStopInsideOfTheFilterAndByAnInterrupt) {
  traced_range();
  range(1, PT_ADDR_CFG_TRACE_STOP, 0x1800, 0x18ff);
  start(kUser);
  unit.interrupt(0x1001, 0x1800, user());
  EXPECT_EQ(rest(), "FUP 1001\nTIP.PGD 1800\nTraceStop\n");
}

TEST_F(Filtering, TraceStopNeedsTheContext) {
  range(0, PT_ADDR_CFG_TRACE_STOP, kKernelIp, kKernelIp + 0xfff);
  start(kUser);
  unit.far_transfer(kKernelIp, kernel());
  unit.jump(kKernelIp);
  unit.far_transfer(0x1002, user());
  EXPECT_EQ(rest(), "TIP.PGD -\nTIP.PGE 1002\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, TraceStopWhereTheContextBegins) {
  range(0, PT_ADDR_CFG_TRACE_STOP, 0x4000, 0x4fff);
  start(kOs | bit(PT_CTL_CR3_FILTER), kernel(kCr3));
  unit.jump(0x4000);
  unit.mov_cr3(0, 0x4003);  // case 5f
  EXPECT_EQ(rest(), "PIP 0\nTraceStop\n");
}

TEST_F(Filtering, SettingTraceEnInsideOfATraceStopRangeIsNoBranch) {
  range(0, PT_ADDR_CFG_TRACE_STOP, 0x1000, 0x1fff);
  start(kUser);
  EXPECT_FALSE(machine.status(PT_STATUS_STOPPED));
  unit.jump(0x1010);
  EXPECT_EQ(rest(), "TIP.PGD 1010\nTraceStop\n");
}

// ---- other packets

TEST_F(Filtering, PtwriteNeedsPacketEn) {
  traced_range();
  start(kUser | bit(PT_CTL_PTW_EN));
  unit.ptwrite(0x11, true, 0x1004);
  unit.jump(0x3000);
  unit.ptwrite(0x22, true, 0x3004);
  EXPECT_EQ(rest(), "PTW 11,1\nTIP.PGD 3000\n");
}

TEST_F(Filtering, PtwriteWithFup) {
  start(kUser | bit(PT_CTL_PTW_EN) | bit(PT_CTL_FUP_ON_PTW));
  unit.ptwrite(0x11, false, 0x1004);
  EXPECT_EQ(rest(), "PTW 11 ip\nFUP 1004\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, WithoutBranchEnOnlyOtherPacketsComeOut) {
  range(0, PT_ADDR_CFG_FILTER, 0x1000, 0x1fff);
  unit.set_state(kernel());
  machine.start(kOs | bit(PT_CTL_PTW_EN) | bit(PT_CTL_FUP_ON_PTW) | ranges, 0x1000);
  unit.ptwrite(1, true, 0x1000);
  unit.conditional(true, 0x1010);
  unit.call_indirect(0x1012, 0x1100);
  unit.interrupt(0x1100, 0x1200, kernel());
  unit.mov_cr3(kOtherCr3, 0x1203);
  unit.jump(0x3000);
  unit.ptwrite(2, true, 0x3000);
  unit.jump(0x1000);
  unit.ptwrite(3, true, 0x1000);
  machine.end(0x1010);
  EXPECT_EQ(machine.packets(), "PTW 1,1 ip\nFUP 1000\nPIP 6000\nPTW 3,1 ip\nFUP 1000\n");
}

TEST_F(Filtering, PowerEventsKnowNoFilter) {
  traced_range();
  start(kUser | bit(PT_CTL_PWR_EVT_EN));
  unit.jump(0x3000);
  unit.mwait(0x20, 1);
  unit.power_entry(2, 1, false);
  unit.execution_stop(0x3003);
  unit.power_exit(2, 2, 1);
  unit.far_transfer(kKernelIp, kernel());
  unit.mwait(0x20, 1);
  unit.power_entry(3, 0, true);
  EXPECT_EQ(rest(), "TIP.PGD 3000\nMWAIT 20,1\nPWRE 21\nEXSTOP 0\nPWRX 22,1\nPWRE 30 hw\n");
}

TEST_F(Filtering, EventsOfAFilteredContextAreHidden) {
  start(kUser | bit(PT_CTL_EVENT_EN));
  unit.event(packet::CfeType::INTR, 32);
  unit.interrupt(0x1001, kKernelIp, kernel());
  unit.event_data(packet::EvdType::CR2, 0x1234);
  unit.event(packet::CfeType::INTR, 14);
  unit.interrupt(kKernelIp + 1, kKernelIp, kernel());
  unit.event_at(packet::CfeType::IRET, 0, kKernelIp + 2);
  unit.far_transfer(0x1001, user());
  EXPECT_EQ(rest(), "CFE 1,20\nFUP 1001\nTIP.PGD -\nTIP.PGE 1001\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, ATransactionThatBeganUnseenIsTold) {
  start(kUser);
  unit.transaction(true, false, 0x1001);
  unit.far_transfer(kKernelIp, kernel());
  unit.transaction(false, false, kKernelIp);
  unit.far_transfer(0x1002, user());
  EXPECT_EQ(rest(), "MODE.TSX 1\nFUP 1001\nTIP.PGD -\nMODE.TSX 0\nTIP.PGE 1002\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, DisRetcAndDisTnt) {
  for (const bool tnt : {true, false}) {
    Machine other;
    other.unit.set_state(user());
    other.start(kUser | kBranches | bit(tnt ? PT_CTL_DIS_RETC : PT_CTL_DIS_TNT), 0x1000);
    other.unit.conditional(true, 0x1010);
    other.unit.call(0x1015, 0x2000);
    other.unit.ret(0x1015);
    other.end(0x1020);
    EXPECT_EQ(other.packets(), std::string("MODE.Exec 40,1\nTIP.PGE 1000\n") + (tnt ? "TNT.8 !\n" : "") +
                                   "TIP 1015\nFUP 1020\nTIP.PGD -\n");
  }
}

// ---- overflow

TEST_F(Filtering, WhatFallsIntoAnOverflowIsLost) {
  start(kUser | kOs | bit(PT_CTL_PTW_EN));
  unit.conditional(true, 0x1010);
  unit.begin_overflow();
  unit.jump_indirect(0x1100);
  unit.ptwrite(1, true, 0x1100);
  unit.interrupt(0x1104, kKernelIp, kernel());
  unit.end_overflow(kKernelIp + 4);
  unit.jump_indirect(kKernelIp + 0x40);
  EXPECT_EQ(rest(), "TNT.8 !\nOVF\nFUP ffff800000100004\nTIP ffff800000100040\nFUP 9000\nTIP.PGD -\n");
}

TEST_F(Filtering, AnOverflowMayEndOutsideOfTheFilterOrByTraceEn) {
  start(kUser);
  unit.begin_overflow();
  unit.far_transfer(kKernelIp, kernel());
  unit.end_overflow(kKernelIp + 4);
  unit.far_transfer(0x1002, user());
  unit.begin_overflow();
  EXPECT_EQ(rest(), "OVF\nMODE.Exec 40,1\nTIP.PGE 1002\nOVF\n");
}

TEST_F(Filtering, ATraceStopInAnOverflowComesBehindIt) {
  range(0, PT_ADDR_CFG_TRACE_STOP, 0x4000, 0x4fff);
  start(kUser);
  unit.begin_overflow();
  unit.jump(0x4000);
  unit.jump(0x1000);
  EXPECT_FALSE(machine.status(PT_STATUS_STOPPED));
  unit.end_overflow(0x1000);
  EXPECT_TRUE(machine.status(PT_STATUS_STOPPED));
  EXPECT_EQ(rest(), "OVF\nTraceStop\n");
}

// ---- output seen from the registers

struct Tables : testing::Test {
  static constexpr std::uint64_t kTable = 0x10000;

  explicit Tables(const GeneratorConfig& config = Machine::small_buffer()) : machine({}, config) {
    machine.unit.set_state(user());
    machine.write(PT_MSR_RTIT_OUTPUT_BASE, kTable);
    machine.write(PT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
  }
  void table(const std::vector<std::uint64_t>& entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) machine.platform.put_entry(kTable + 8 * i, entries[i]);
  }
  void run(unsigned jumps) {
    for (; jumps > 0; --jumps)
      machine.unit.jump_indirect((jumps & 1) != 0 ? 0x1000'0000'0000 : 0x2000'0000'0000);
  }
  Machine machine;
};

TEST_F(Tables, AnErrorOnTheWayClearsTriggerEn) {
  table({0x8000, 0x9000 | bit(1)});
  machine.start(kUser | kBranches | kTopa, 0x1000);
  run(400);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS) & 0xff, bit(PT_STATUS_TRIGGER_EN) | 3);
  run(400);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS) & 0xff, bit(PT_STATUS_ERROR));
  EXPECT_FALSE(machine.unit.watching());
  EXPECT_TRUE(machine.unit.trace_enabled());
  EXPECT_EQ(machine.read(PT_MSR_RTIT_OUTPUT_MASK_PTRS), 0xffU);  // entry 1, offset 0
  machine.end(0x1000);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS) & 0xff, bit(PT_STATUS_ERROR));
}

TEST_F(Tables, AnErrorAtOnce) {
  table({0x8000 | bit(3)});
  machine.start(kUser | kBranches | kTopa, 0x1000);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS), bit(PT_STATUS_ERROR));
  EXPECT_TRUE(machine.platform.writes.empty());
}

TEST_F(Tables, StopEndsItAndIntIsToldFirst) {
  table({0x8000 | kStop | kInt, kTable | kEnd});
  machine.start(kUser | kBranches | kTopa, 0x1000);
  run(1000);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_STATUS) & 0xff, bit(PT_STATUS_STOPPED));
  EXPECT_EQ(machine.platform.interrupts, 1U);
  EXPECT_EQ(machine.offset(), 4096U);
  machine.end(0x1000);
  machine.write(PT_MSR_RTIT_STATUS, 0);
  machine.write(PT_MSR_RTIT_OUTPUT_MASK_PTRS, 0);
  machine.start(kUser | kBranches | kTopa, 0x1000);
  EXPECT_TRUE(machine.status(PT_STATUS_TRIGGER_EN));
}

TEST_F(Tables, EveryRegionWithIntInterrupts) {
  table({0x8000 | kInt, 0x9000, 0xa000 | kInt, kTable | kEnd});
  machine.start(kUser | kBranches | kTopa, 0x1000);
  run(10000);
  std::size_t written = 0;
  for (const auto& [address, size] : machine.platform.writes) written += size;
  const std::size_t regions = written / 4096;
  EXPECT_GT(regions, 12U);
  EXPECT_EQ(machine.platform.interrupts, regions / 3 * 2 + (regions % 3 != 0 ? 1 : 0));
  EXPECT_FALSE(machine.status(PT_STATUS_PEND_TOPA_PMI));
}

TEST_F(Tables, APreservedPmiComesAgain) {
  const std::uint64_t ctl = kUser | kBranches | kTopa | bit(PT_CTL_INJECT_PSB_PMI_ON_ENABLE);
  table({0x8000 | kInt, kTable | kEnd});
  machine.start(ctl, 0x1000);
  run(800);
  EXPECT_EQ(machine.platform.interrupts, 1U);
  EXPECT_TRUE(machine.status(PT_STATUS_PEND_TOPA_PMI));
  machine.end(0x1000);
  machine.start(ctl, 0x1000);
  EXPECT_EQ(machine.platform.interrupts, 2U);
  machine.end(0x1000);
  machine.write(PT_MSR_RTIT_STATUS, 0);
  machine.start(ctl, 0x1000);
  EXPECT_EQ(machine.platform.interrupts, 2U);
}

TEST_F(Tables, APendingPsbComesWhenTraceEnIsSet) {
  const std::uint64_t ctl = kUser | kBranches | kTopa | bit(PT_CTL_INJECT_PSB_PMI_ON_ENABLE);
  table({0x8000, kTable | kEnd});
  machine.write(PT_MSR_RTIT_STATUS, bit(PT_STATUS_PEND_PSB) | std::uint64_t{5} << 32);
  machine.start(ctl, 0x1000);
  EXPECT_FALSE(machine.status(PT_STATUS_PEND_PSB));
  EXPECT_EQ(decode(machine.platform.read(0x8000, machine.offset()))[0].kind, PacketKind::PSB);
}

TEST_F(Tables, APsbThatIsDueWhenTraceEnGoesIsPending) {
  for (const bool preserved : {false, true}) {
    table({0x8000, kTable | kEnd});
    machine.write(PT_MSR_RTIT_STATUS, 0);
    machine.start(kUser | kBranches | kTopa | bit(PT_CTL_PTW_EN) |
                      (preserved ? bit(PT_CTL_INJECT_PSB_PMI_ON_ENABLE) : 0),
                  0x1000);
    for (int i = 0; i < 300; ++i) machine.unit.ptwrite(1, true, 0x1000);  // where it goes on is not known
    machine.end(0x1000);
    EXPECT_EQ(machine.status(PT_STATUS_PEND_PSB), preserved);
  }
}

struct Buffered : Tables {
  static GeneratorConfig buffer() {
    GeneratorConfig config;
    config.chunk_bytes = 256;
    return config;
  }
  Buffered() : Tables(buffer()) {}
};

TEST_F(Buffered, ClearingTraceEnWritesWhatIsBuffered) {
  table({0x8000, kTable | kEnd});
  machine.start(kUser | kBranches | kTopa, 0x1000);
  run(5);
  EXPECT_TRUE(machine.platform.writes.empty());
  machine.end(0x1000);
  EXPECT_EQ(machine.platform.writes.size(), 1U);
  const auto packets = decode(machine.platform.read(0x8000, machine.offset()));
  EXPECT_EQ(packets.back().kind, PacketKind::TIP_PGD);
}

TEST(TraceUnit, AResetDropsTheTrace) {
  Machine machine;
  machine.unit.set_state(user());
  machine.start(kUser | kBranches, 0x1000);
  machine.unit.reset(true);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_CTL), kUser | kBranches);
  EXPECT_FALSE(machine.unit.watching());
  machine.unit.jump_indirect(0x1000);
  machine.start(kUser | kBranches, 0x1000);
  EXPECT_TRUE(machine.unit.packets_enabled());
  machine.unit.reset(false);
  EXPECT_EQ(machine.read(PT_MSR_RTIT_CTL), 0U);
}

}  // namespace
}  // namespace ptkit::ptmodel
