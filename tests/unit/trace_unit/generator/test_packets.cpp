// Which packets come out for which call, and in which order.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "unit/support/units/traced_unit.h"

namespace ptkit::trace_unit::generator {
namespace {

using test::after_start;
using test::Packet;
using test::PacketKind;
using test::text;
using test::Traced;

// A unit that traces at 0x1000; the packets up to there are checked by Start.*.
struct Running : Traced {
  explicit Running(const GeneratorConfig& config = {}) : Traced(config) { unit.enable(0x1000); }
  std::string rest() {
    const std::string all = after_start(packets());
    const std::string begin = "MODE.Exec 40,1\nTIP.PGE 1000\n";
    EXPECT_EQ(all.substr(0, begin.size()), begin);
    return all.substr(begin.size());
  }
};

std::string all_text(const std::vector<Packet>& packets) {
  std::string out;
  for (const Packet& packet : packets) out += text(packet) + "\n";
  return out;
}

GeneratorConfig no_tsc() {
  GeneratorConfig config;
  config.tsc = false;
  return config;
}

TEST(Start, PsbPlusThenModeThenPge) {
  Traced traced(no_tsc());
  traced.unit.enable(0x401000);
  EXPECT_EQ(all_text(traced.packets()), "PSB\nCBR 1e\nPSBEND\nMODE.Exec 40,1\nTIP.PGE 401000\n");
}

TEST(Start, TscAndTmaWithMtc) {
  GeneratorConfig config;
  config.mtc = true;
  Traced traced(config);
  traced.unit.set_time(1000, 0);
  traced.unit.enable(0x401000);
  EXPECT_EQ(all_text(traced.packets()),
            "PSB\nTSC 3e8\nTMA b,4c\nCBR 1e\nPSBEND\nMODE.Exec 40,1\nTIP.PGE 401000\n");
}

TEST(Start, OutsideOfTheFilterAndThenInside) {
  Traced traced(no_tsc());
  traced.unit.start();
  EXPECT_FALSE(traced.unit.packets_enabled());
  traced.unit.conditional(true, 0x10);
  traced.unit.jump_indirect(0x20);
  traced.unit.enable(0x401000);
  EXPECT_TRUE(traced.unit.packets_enabled());
  EXPECT_EQ(after_start(traced.packets()), "MODE.Exec 40,1\nTIP.PGE 401000\n");
}

TEST(Start, AgainIsTscWithoutPsb) {
  Traced traced(GeneratorConfig{});
  traced.unit.set_time(10, 0);
  traced.unit.enable(0x1000);
  traced.unit.disable();
  traced.unit.set_time(20, 0);
  traced.unit.enable(0x2000);
  EXPECT_EQ(after_start(traced.packets()),
            "MODE.Exec 40,1\nTIP.PGE 1000\nTIP.PGD -\nTSC 14\nCBR 1e\nTIP.PGE 2000\n");
}

TEST(Start, NothingBeforeAndNothingAfter) {
  Traced traced(GeneratorConfig{});
  traced.unit.conditional(true, 1);
  traced.unit.async(1, 2);
  traced.unit.overflow(3);
  traced.unit.trace_stop();
  traced.unit.set_time(100000000, 0);
  traced.unit.disable();
  EXPECT_TRUE(traced.packets().empty());
}

TEST(Branches, SixBitsMakeAPacket) {
  Running traced;
  for (int i = 0; i < 8; ++i) traced.unit.conditional(i % 2 == 0, 0x1000);
  EXPECT_EQ(traced.rest(), "TNT.8 !.!.!.\nTNT.8 !.\n");
}

TEST(Branches, BitsComeBeforeTheTip) {
  Running traced;
  traced.unit.conditional(true, 0x1010);
  traced.unit.conditional(false, 0x1020);
  traced.unit.jump_indirect(0x2000);
  traced.unit.call_indirect(0x2005, 0x3000);
  EXPECT_EQ(traced.rest(), "TNT.8 !.\nTIP 2000\nTIP 3000\n");
}

TEST(Branches, LongTntForMoreThanSixBits) {
  GeneratorConfig config;
  config.use_tnt_64 = true;
  Running traced(config);
  for (int i = 0; i < 47; ++i) traced.unit.conditional(true, 0x1000);
  for (int i = 0; i < 7; ++i) traced.unit.conditional(false, 0x1000);
  traced.unit.jump_indirect(0x2000);
  for (int i = 0; i < 6; ++i) traced.unit.conditional(true, 0x1000);
  const std::string bits47(47, '!');
  EXPECT_EQ(traced.rest(), "TNT.64 " + bits47 + "\nTNT.64 .......\nTIP 2000\nTNT.8 !!!!!!\n");
}

TEST(Branches, DisTntLeavesNeitherBitsNorCompressedReturns) {
  GeneratorConfig config;
  config.tnt = false;
  Running traced(config);
  traced.unit.conditional(true, 0x1010);
  traced.unit.call(0x1015, 0x2000);
  traced.unit.ret(0x1015);
  EXPECT_EQ(traced.rest(), "TIP 1015\n");
}

TEST(Branches, DeferredTipsComeBehindTheBits) {
  GeneratorConfig config;
  config.deferred_tips = true;
  Running traced(config);
  traced.unit.conditional(true, 0x1010);
  traced.unit.jump_indirect(0x2000);
  traced.unit.conditional(false, 0x2010);
  traced.unit.call_indirect(0x2015, 0x3000);
  traced.unit.conditional(true, 0x3010);
  traced.unit.ret(0x2015);
  traced.unit.async(0x2015, 0x9000);
  EXPECT_EQ(traced.rest(), "TNT.8 !.!!\nTIP 2000\nTIP 3000\nFUP 2015\nTIP 9000\n");
}

TEST(Branches, AReturnIsNeverDeferred) {
  GeneratorConfig config;
  config.deferred_tips = true;
  Running traced(config);
  traced.unit.jump_indirect(0x2000);
  traced.unit.ret(0x3000);
  traced.unit.conditional(true, 0x3010);
  EXPECT_EQ(traced.rest(), "TIP 2000\nTIP 3000\nTNT.8 !\n");
}

TEST(Branches, DeferringEndsWithAFullBuffer) {
  GeneratorConfig config;
  config.deferred_tips = true;
  Running traced(config);
  traced.unit.conditional(true, 0x1010);
  traced.unit.jump_indirect(0x2000);
  for (int i = 0; i < 5; ++i) traced.unit.conditional(true, 0x2000);
  traced.unit.conditional(false, 0x2000);
  EXPECT_EQ(traced.rest(), "TNT.8 !!!!!!\nTIP 2000\nTNT.8 .\n");
}

// The manual defers both, a TNT packet that is not full and the TIP. Without bits there is no such packet.
TEST(Branches, ATipIsNotDeferredWithoutBits) {
  GeneratorConfig config;
  config.deferred_tips = true;
  Running traced(config);
  traced.unit.jump_indirect(0x2000);
  traced.unit.conditional(true, 0x2000);
  EXPECT_EQ(traced.rest(), "TIP 2000\nTNT.8 !\n");
}

TEST(Returns, CompressedWhereTheTargetIsTheCalls) {
  Running traced;
  traced.unit.call(0x1005, 0x2000);
  traced.unit.call_indirect(0x2005, 0x3000);
  traced.unit.ret(0x2005);
  traced.unit.ret(0x1005);
  traced.unit.ret(0x5000);
  EXPECT_EQ(traced.rest(), "TIP 3000\nTNT.8 !!\nTIP 5000\n");
}

TEST(Returns, ACallToTheNextInstructionIsNotPushed) {
  Running traced;
  traced.unit.call(0x1005, 0x2000);
  traced.unit.call(0x2005, 0x2005);  // reads the IP
  traced.unit.ret(0x1005);
  traced.unit.call_indirect(0x1010, 0x1010);  // an indirect one is
  traced.unit.ret(0x1010);
  EXPECT_EQ(traced.rest(), "TNT.8 !\nTIP 1010\nTNT.8 !\n");
}

TEST(Returns, AnUncompressedReturnPops) {
  Running traced;
  traced.unit.call(0x1005, 0x2000);
  traced.unit.call(0x2005, 0x3000);
  traced.unit.ret(0x7000);
  traced.unit.ret(0x1005);
  EXPECT_EQ(traced.rest(), "TIP 7000\nTNT.8 !\n");
}

TEST(Returns, AnUncompressedReturnDoesNotPopIfSoConfigured) {
  GeneratorConfig config;
  config.tip_ret = TipRet::KEEPS;
  Running traced(config);
  traced.unit.call(0x1005, 0x2000);
  traced.unit.ret(0x7000);
  traced.unit.ret(0x1005);
  EXPECT_EQ(traced.rest(), "TIP 7000\nTNT.8 !\n");
}

TEST(Returns, AnUncompressedReturnClearsTheCallsBeforeItIfSoConfigured) {
  GeneratorConfig config;
  config.tip_ret = TipRet::CLEARS;
  Running traced(config);
  traced.unit.call(0x1005, 0x2000);
  traced.unit.call(0x2005, 0x3000);
  traced.unit.ret(0x7000);
  traced.unit.call(0x7005, 0x8000);
  traced.unit.ret(0x7005);
  traced.unit.ret(0x2005);
  traced.unit.ret(0x1005);
  EXPECT_EQ(traced.rest(), "TIP 7000\nTNT.8 !\nTIP 2005\nTIP 1005\n");
}

TEST(Returns, OnlySixtyFourCallsAreKept) {
  Running traced;
  for (std::uint64_t i = 0; i < 65; ++i) traced.unit.call(0x10000 + i, 0x2000);
  for (std::uint64_t i = 65; i-- > 0;) traced.unit.ret(0x10000 + i);
  std::string rest;
  for (int i = 0; i < 10; ++i) rest += "TNT.8 !!!!!!\n";
  EXPECT_EQ(traced.rest(), rest + "TNT.8 !!!!\nTIP 10000\n");
}

TEST(Returns, NotCompressedAcrossAPauseOrALoss) {
  Running traced;
  traced.unit.call(0x1005, 0x2000);
  traced.unit.far_transfer_out();
  traced.unit.enable(0x2010);
  traced.unit.ret(0x1005);
  traced.unit.call(0x1105, 0x2000);
  traced.unit.overflow(0x2000);
  traced.unit.ret(0x1105);
  EXPECT_EQ(traced.rest(), "TIP.PGD -\nTIP.PGE 2010\nTIP 1005\nOVF\nFUP 2000\nTIP 1105\n");
}

TEST(Psb, RepeatsTheStateAndEndsCompression) {
  GeneratorConfig config = no_tsc();
  config.psb_bytes = 40;
  config.user_only = false;
  Traced traced(config);
  traced.unit.set_cr3(0x1234000);
  traced.unit.set_vmcs(0x5678000);
  traced.unit.set_non_root(true);
  traced.unit.enable(0x1000);
  traced.unit.call(0x1005, 0x2000);
  for (int i = 0; i < 4; ++i) traced.unit.jump_indirect(0x123456789a00);
  traced.unit.jump_indirect(0x123456789b00);
  traced.unit.ret(0x1005);
  const std::string all = all_text(traced.packets());
  EXPECT_NE(all.find("PSB\nCBR 1e\nPIP 1234000 nr\nVMCS 5678000\nMODE.TSX 0\nMODE.Exec 40,1\nFUP 123456789"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("TIP 1005"), std::string::npos) << all;
}

TEST(Psb, WaitsForAKnownIp) {
  GeneratorConfig config = no_tsc();
  config.psb_bytes = 64;
  Running traced(config);
  for (int i = 0; i < 600; ++i) traced.unit.conditional(true);
  EXPECT_EQ(std::count(traced.bytes.begin(), traced.bytes.end(), 0x82), 0);
  traced.unit.at(0x4000);
  const std::string rest = traced.rest();
  EXPECT_NE(rest.find("PSB\nCBR 1e\nMODE.TSX 0\nMODE.Exec 40,1\nFUP 4000\nPSBEND\n"), std::string::npos);
}

// Instructions that have packets of their own retire where these are off, too.
TEST(Psb, WaitsForTheInstructionAfterOneWithoutPackets) {
  const std::vector<std::function<void(PacketGenerator&)>> instructions = {
      [](PacketGenerator& unit) { unit.ptwrite(1, true, 0x4000); },
      [](PacketGenerator& unit) { unit.mwait(0, 0); }};
  for (const auto& execute : instructions) {
    GeneratorConfig config;
    config.psb_bytes = 64;
    config.mtc = true;
    Running traced(config);
    traced.unit.at(0x4000);
    execute(traced.unit);
    for (std::uint64_t t = 0; t < 100; ++t) traced.unit.set_time(t * 672, 0);
    traced.unit.at(0x4005);
    const std::string rest = traced.rest();
    EXPECT_EQ(rest.find("FUP 4000"), std::string::npos) << rest;
    EXPECT_NE(rest.find("FUP 4005"), std::string::npos) << rest;
  }
}

TEST(Psb, HasNoFupWhilePacketsAreOff) {
  GeneratorConfig config = no_tsc();
  config.psb_bytes = 64;
  config.mtc = true;
  Running traced(config);
  traced.unit.far_transfer_out();
  for (std::uint64_t t = 0; t < 100; ++t) traced.unit.set_time(t * 672, 0);
  traced.unit.enable(0x4000);
  const std::string rest = traced.rest();
  EXPECT_NE(rest.find("PSB\nCBR 1e\nPSBEND\n"), std::string::npos) << rest;
  // What a decoder needs that begins at that PSB.
  EXPECT_NE(rest.find("MODE.Exec 40,1\nTIP.PGE 4000\n"), std::string::npos) << rest;
}

TEST(Transfers, UserOnlySystemCall) {
  Running traced;
  traced.unit.conditional(true, 0x1008);
  traced.unit.far_transfer_out();
  traced.unit.conditional(true, 0x99);  // not traced
  traced.unit.enable(0x100a);
  EXPECT_EQ(traced.rest(), "TNT.8 !\nTIP.PGD -\nTIP.PGE 100a\n");
}

TEST(Transfers, InterruptInAndOut) {
  Running traced;
  traced.unit.conditional(false, 0x1008);
  traced.unit.async(0x1008, 0x5000);
  traced.unit.far_transfer(0x1008);
  traced.unit.async_out(0x1009);
  traced.unit.enable(0x1009);
  EXPECT_EQ(traced.rest(), "TNT.8 .\nFUP 1008\nTIP 5000\nTIP 1008\nFUP 1009\nTIP.PGD -\nTIP.PGE 1009\n");
}

TEST(Transfers, LeavingTheFilterSaysWhereTo) {
  Running traced;
  traced.unit.disable(0x9000);
  traced.unit.enable(0x1000);
  EXPECT_EQ(traced.rest(), "TIP.PGD 9000\nTIP.PGE 1000\n");
}

TEST(Transfers, ModeComesBeforeItsTipAndOnlyWhenChanged) {
  Running traced;
  traced.unit.set_mode(false, true, false);
  traced.unit.far_transfer(0x2000);
  traced.unit.far_transfer(0x2010);
  traced.unit.set_mode(true, false, true);  // the interrupt flag does not count without event trace
  traced.unit.async(0x2010, 0x3000);
  EXPECT_EQ(traced.rest(), "MODE.Exec 20,2\nTIP 2000\nTIP 2010\nFUP 2010\nMODE.Exec 40,1\nTIP 3000\n");
}

TEST(Transfers, PagingBetweenFupAndTip) {
  GeneratorConfig config = no_tsc();
  config.user_only = false;
  Running traced(config);
  traced.unit.set_cr3(0xabc000);
  traced.unit.transfer_loads_cr3(0xdef000);
  traced.unit.transfer_loads_vmcs(0x7000);
  traced.unit.async(0x1000, 0x2000);
  EXPECT_EQ(traced.rest(), "PIP abc000\nFUP 1000\nPIP def000\nVMCS 7000\nTIP 2000\n");
}

TEST(Transfers, UserOnlyHidesPaging) {
  Running traced;
  traced.unit.set_cr3(0xabc000);
  traced.unit.set_vmcs(0x1000);
  traced.unit.transfer_loads_cr3(0xdef000);
  traced.unit.async(0x1000, 0x2000);
  EXPECT_EQ(traced.rest(), "FUP 1000\nTIP 2000\n");
}

TEST(Tsx, BeginCommitAbort) {
  Running traced;
  traced.unit.conditional(true, 0x1010);
  traced.unit.tsx(true, false, 0x1010);
  traced.unit.tsx(false, false, 0x1020);
  traced.unit.tsx(true, false, 0x1030);
  traced.unit.tsx(false, true, 0x1040);
  traced.unit.async(0x1040, 0x1050);
  EXPECT_EQ(
      traced.rest(),
      "TNT.8 !\nMODE.TSX 1\nFUP 1010\nMODE.TSX 0\nFUP 1020\nMODE.TSX 1\nFUP 1030\nMODE.TSX 2\nFUP 1040\n"
      "TIP 1050\n");
}

TEST(Tsx, ATransactionThatBeganUnseenIsToldAtPge) {
  Running traced;
  traced.unit.far_transfer_out();
  traced.unit.tsx(true, false, 0x1010);
  traced.unit.enable(0x1020);
  EXPECT_EQ(traced.rest(), "TIP.PGD -\nMODE.TSX 1\nTIP.PGE 1020\n");
}

TEST(Overflow, FupWithAFullIp) {
  Running traced;
  traced.unit.conditional(true, 0x1010);
  traced.unit.overflow(0x1020);
  const std::vector<Packet> packets = traced.packets();
  ASSERT_GE(packets.size(), 3U);
  EXPECT_EQ(text(packets[packets.size() - 2]), "OVF");
  EXPECT_EQ(text(packets.back()), "FUP 1020");
  EXPECT_NE(packets.back().payload2, 1U);  // not relative to what was lost
}

TEST(Overflow, WithPacketsOffEndsAtPge) {
  Running traced;
  traced.unit.overflow();
  traced.unit.conditional(true, 1);
  traced.unit.enable(0x4000);
  EXPECT_EQ(traced.rest(), "OVF\nMODE.Exec 40,1\nTIP.PGE 4000\n");
}

TEST(Overflow, StateThatChangedUnseenIsRepeatedByPsb) {
  Running traced(no_tsc());
  traced.unit.set_mode(false, true, false);
  traced.unit.overflow(0x1020);
  EXPECT_EQ(traced.rest(), "OVF\nFUP 1020\nPSB\nCBR 1e\nMODE.TSX 0\nMODE.Exec 20,2\nFUP 1020\nPSBEND\n");
}

TEST(Overflow, WhileStoppedOrOffIsNothing) {
  Running traced;
  traced.unit.trace_stop();
  traced.unit.overflow(0x1020);
  traced.unit.overflow();
  EXPECT_EQ(traced.rest(), "TIP.PGD -\nTraceStop\n");
}

TEST(TraceStop, EndsUntilTraceEnIsSetAgain) {
  Running traced(no_tsc());
  traced.unit.conditional(true, 0x1010);
  traced.unit.disable(0x8000);
  traced.unit.trace_stop();
  traced.unit.conditional(true, 0x1010);
  traced.unit.enable(0x1000);
  EXPECT_EQ(traced.rest(), "TNT.8 !\nTIP.PGD 8000\nTraceStop\nCBR 1e\nTIP.PGE 1000\n");
}

TEST(Ptwrite, WithAndWithoutFup) {
  GeneratorConfig config;
  config.ptw = true;
  Running plain(config);
  plain.unit.conditional(true, 0x1010);
  plain.unit.ptwrite(0x1122334455667788, true, 0x1010);
  plain.unit.ptwrite(0x1122334455667788, false, 0x1014);
  EXPECT_EQ(plain.rest(), "TNT.8 !\nPTW 1122334455667788,1\nPTW 55667788\n");
  config.fup_on_ptw = true;
  Running with_fup(config);
  with_fup.unit.ptwrite(7, true, 0x1010);
  EXPECT_EQ(with_fup.rest(), "PTW 7,1 ip\nFUP 1010\n");
  config.ptw = false;
  Running off(config);
  off.unit.ptwrite(7, true, 0x1010);
  EXPECT_EQ(off.rest(), "");
}

TEST(Power, SleepAndWake) {
  GeneratorConfig config = no_tsc();
  config.power = true;
  Running traced(config);
  traced.unit.mwait(0x20, 1);
  traced.unit.pwre(3, 1, false);
  traced.unit.exstop(0x1010);
  traced.unit.wake();
  traced.unit.pwrx(3, 6, WAKE_INTERRUPT);
  EXPECT_EQ(traced.rest(), "MWAIT 20,1\nPWRE 31\nEXSTOP 0 ip\nFUP 1010\nCBR 1e\nPWRX 36,1\n");
}

TEST(Power, OutsideOfTheFilterThereIsNoIp) {
  GeneratorConfig config = no_tsc();
  config.power = true;
  Running traced(config);
  traced.unit.far_transfer_out();
  traced.unit.pwre(2, 0, true);
  traced.unit.exstop(0x1010);
  EXPECT_EQ(traced.rest(), "TIP.PGD -\nPWRE 20 hw\nEXSTOP 0\n");
}

TEST(Power, NothingUnlessEnabled) {
  Running traced;
  traced.unit.mwait(1, 1);
  traced.unit.pwre(1, 1, true);
  traced.unit.exstop(1);
  traced.unit.pwrx(1, 1, 1);
  EXPECT_EQ(traced.rest(), "");
}

TEST(EventTrace, PageFaultInterruptReturn) {
  GeneratorConfig config = no_tsc();
  config.event_trace = true;
  Running traced(config);
  traced.unit.event_data(packet::EvdType::CR2, 0xdead000);
  traced.unit.event(packet::CfeType::INTR, 14);
  traced.unit.async(0x1010, 0x5000);
  traced.unit.event(packet::CfeType::IRET, 0);
  traced.unit.far_transfer(0x1010);
  traced.unit.event_at(packet::CfeType::SWINTR, 0x80, 0x1012);
  traced.unit.far_transfer(0x6000);
  EXPECT_EQ(traced.rest(),
            "EVD 0,dead000\nCFE 1,e\nFUP 1010\nTIP 5000\nCFE 2\nTIP 1010\nCFE e,80 ip\nFUP 1012\nTIP 6000\n");
}

TEST(EventTrace, InterruptFlag) {
  GeneratorConfig config = no_tsc();
  config.event_trace = true;
  Running traced(config);
  traced.unit.set_interrupt_flag(true, 0x1001);
  traced.unit.set_interrupt_flag(true, 0x1002);
  traced.unit.set_interrupt_flag(false, 0x1003);
  EXPECT_EQ(traced.rest(), "MODE.Exec 40,5\nFUP 1001\nMODE.Exec 40,1\nFUP 1003\n");
}

TEST(Pebs, BlocksWithTheirItems) {
  Running traced;
  const PebsItem general[] = {{0, 0x1111222233334444}, {1, 5}};
  const PebsItem small[] = {{3, 0x1122334455667788}};
  const PebsBlock record[] = {{1, false, general}, {4, true, small}};
  traced.unit.conditional(true, 0x1010);
  traced.unit.pebs(record, 0x1010);
  EXPECT_EQ(traced.rest(),
            "TNT.8 !\nBBP 1\nBIP 0,1111222233334444\nBIP 1,5\nBBP 4,1\nBIP 3,55667788\nBEP 0 ip\nFUP 1010\n");
}

TEST(Trigger, WithItsIp) {
  Running traced;
  traced.unit.trigger(2, 100, true, false, 0x1010);
  EXPECT_EQ(traced.rest(), "TRIG 2,64 ip\nFUP 1010\n");
}

TEST(Output, ChunksAreBoundedAndFlushGivesTheRest) {
  GeneratorConfig config;
  config.chunk_bytes = 64;
  config.psb_bytes = 1 << 20;
  std::size_t total = 0;
  std::size_t largest = 0;
  std::size_t parts = 0;
  PacketGenerator unit(config, [&](base::Bytes part) {
    total += part.size();
    largest = std::max(largest, part.size());
    ++parts;
  });
  unit.enable(0x1000);
  for (std::uint64_t i = 0; i < 1000; ++i) unit.jump_indirect(0x1000 + (i * 0x123456789));
  EXPECT_LE(largest, 64U + 16U);
  EXPECT_GT(parts, 50U);
  unit.flush();
  EXPECT_EQ(total, unit.bytes_written());
}

}  // namespace
}  // namespace ptkit::trace_unit::generator
