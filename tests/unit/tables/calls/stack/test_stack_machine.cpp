#include <gtest/gtest.h>

#include "tables/calls/stack/stack_machine.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

TEST(StackMachine, MatchesReturnsOfRecursionByAddress) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kF);
  program.call(kF + 0x20, kF);
  program.ret(kF + 0x40, kF + 0x24);
  program.ret(kF + 0x40, kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  const auto& frames = program.frames.frames;
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0].id, 3U);
  EXPECT_EQ(frames[0].parent, 2U);
  EXPECT_EQ(frames[0].depth, 3);
  EXPECT_EQ(frames[2].id, 1U);
  EXPECT_EQ(frames[2].self_instructions, 20U);
  EXPECT_EQ(frames[2].instructions, 50U);
  EXPECT_EQ(frames[2].new_instructions, 50U);
  EXPECT_EQ(frames[1].new_instructions, 0U);
  EXPECT_EQ(frames[3].end_how, CallEnd::END);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(StackMachine, OneReturnEndsAllTailFrames) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.jump(kF + 0x10, kG);
  program.jump_indirect(kG + 0x10, kH);
  program.ret(kH + 0x10, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kH).how, CallKind::TAIL);
  EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::TAIL);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::TAIL);
  EXPECT_EQ(program.frames.of(kH).parent, program.frames.of(kG).id);
  EXPECT_EQ(program.frames.of(kF).instructions, 30U);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, ReplacesFunctionsThatEndByATailCall) {
  Program program(Tails::REPLACED);
  program.call(kMain + 0x10, kF);
  program.jump(kF + 0x10, kG);
  program.ret(kG + 0x10, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).instructions, 10U);
  EXPECT_EQ(program.frames.of(kG).parent, program.frames.of(kMain).id);
}

TEST(StackMachine, JumpsWithinAFunctionAndToItsColdPartAreNoCalls) {
  Program program;
  program.code.flags[kG] = CODE_COLD;
  program.call(kMain + 0x10, kF);
  program.jump(kF + 0x10, kF);
  program.jump(kF + 0x20, kG);
  program.jump(kG + 0x20, kF + 0x30);
  program.jump_indirect(kF + 0x34, kG + 0x40);  // a switch
  program.jump_indirect(kG + 0x44, kF + 0x40);
  program.ret(kF + 0x44, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.frames.size(), 2U);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(StackMachine, CallOfTheNextInstructionIsNoFrame) {
  Program program;
  program.call(kMain + 0x10, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.frames.size(), 1U);
  EXPECT_EQ(program.self_sum(), 15U);
}

TEST(StackMachine, CallersThatWereNotSeenBeginWithTheStream) {
  Program program;
  program.ret(kF + 0x40, kG + 0x14);
  program.call(kG + 0x20, kF);
  program.ret(kF + 0x40, kG + 0x24);
  program.ret(kG + 0x40, kMain + 0x14);
  program.finish();
  const auto& frames = program.frames.frames;
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_EQ(frames[0].entry_ip, kF);
  EXPECT_EQ(frames[0].parent, program.frames.of(kG).id);
  EXPECT_EQ(program.frames.of(kG).depth, -1);
  EXPECT_EQ(program.frames.of(kG).instructions, 40U);
  EXPECT_EQ(program.frames.of(kMain).depth, -2);
  EXPECT_EQ(program.frames.of(kMain).self_instructions, 5U);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(StackMachine, RecursionBelowTheBeginCountsInstructionsOnce) {
  Program program;
  program.ret(kF + 0x40, kF + 0x14);
  program.ret(kF + 0x40, kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  std::uint64_t sum = 0;
  for (const Frame& frame : program.frames.frames) {
    if (frame.entry_ip == kF) sum += frame.new_instructions;
  }
  EXPECT_EQ(sum, 30U);
}

TEST(StackMachine, ReturnToADeeperFrameSkipsThoseAbove) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kG);
  program.ret(kG + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::UNWIND);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  ASSERT_EQ(program.frames.anomalies.size(), 1U);
  EXPECT_EQ(program.frames.anomalies[0].kind, AnomalyKind::SKIPPED_FRAMES);
}

TEST(StackMachine, ReturnToAnEntryIsAJumpAndAnAnomaly) {
  for (const bool may_be_called : {false, true}) {
    Program program;
    if (!may_be_called) program.code.not_behind_calls = {kG};
    program.call(kMain + 0x10, kF);
    program.ret(kF + 0x10, kG);
    program.ret(kG + 0x10, kMain + 0x14);
    program.finish();
    EXPECT_EQ(program.frames.of(kG).how, CallKind::TAIL);
    EXPECT_EQ(program.frames.of(kG).flags & FRAME_EXACT, FRAME_EXACT);
    EXPECT_EQ(program.frames.of(kF).flags & FRAME_EXACT, FRAME_EXACT);
    ASSERT_EQ(program.frames.anomalies.size(), 1U);
    const Anomaly& anomaly = program.frames.anomalies[0];
    EXPECT_EQ(anomaly.kind, AnomalyKind::RETURN_ELSEWHERE);
    EXPECT_EQ(anomaly.from_ip, kF + 0x10);
    EXPECT_EQ(anomaly.to_ip, kG);
    EXPECT_EQ(anomaly.expected_ip, kMain + 0x14);
    EXPECT_EQ(anomaly.no_call_before, !may_be_called);
  }
}

// A chain of returns to functions, as an attacker writes it on the stack: the last one returns to the caller.
TEST(StackMachine, ReturnsToEntriesAreAnAnomalyEach) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.ret(kF + 0x10, kG);
  program.ret(kG + 0x10, kH);
  program.ret(kH + 0x10, kMain + 0x14);
  program.call(kMain + 0x20, kF);
  program.ret(kF + 0x10, kMain + 0x24);
  program.finish();
  EXPECT_EQ(program.frames.anomalies.size(), 2U);
  EXPECT_EQ(program.frames.of(kMain).depth, 0);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, ReturnThatFitsNothingIsAnAnomaly) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.ret(kF + 0x10, kG + 0x50);
  program.ret(kG + 0x60, kMain + 0x14);
  program.finish();
  ASSERT_EQ(program.frames.anomalies.size(), 1U);
  EXPECT_EQ(program.frames.anomalies[0].kind, AnomalyKind::RETURN_ELSEWHERE);
  EXPECT_EQ(program.frames.anomalies[0].expected_ip, kMain + 0x14);
  EXPECT_EQ(program.frames.of(kG).how, CallKind::RESUMED);
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, KernelFramesEndWithTheReturnToUserCode) {
  constexpr std::uint64_t kKernel = 0xffff'ffff'8000'0000;
  Program program;
  program.call(kMain + 0x10, kF);
  program.branch(BranchKind::SYSCALL, kF + 0x10, kKernel);
  program.call(kKernel + 0x10, kKernel + 0x1000);
  program.branch(BranchKind::ASYNC, kKernel + 0x1010, kKernel + 0x2000, 1);
  program.branch(BranchKind::IRET, kKernel + 0x2010, kKernel + 0x1010);
  program.ret(kKernel + 0x1020, kKernel + 0x14);
  program.branch(BranchKind::SYSRET, kKernel + 0x20, kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kKernel).how, CallKind::SYSCALL);
  EXPECT_EQ(program.frames.of(kKernel).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kKernel + 0x2000).how, CallKind::INTERRUPT);
  EXPECT_EQ(program.frames.of(kKernel + 0x2000).parent, program.frames.of(kKernel + 0x1000).id);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(StackMachine, EachThreadHasItsStack) {
  Program program;
  const Owner one{0, 1, 1, 0};
  const Owner two{0, 1, 2, 0};
  program.machine.on_owner(one, program.position);
  program.call(kMain + 0x10, kF);
  program.machine.on_owner(two, program.position);
  program.call(kG + 0x10, kH);
  program.machine.on_owner(one, program.position);
  program.ret(kF + 0x40, kMain + 0x14);
  program.machine.on_owner(two, program.position);
  program.ret(kH + 0x40, kG + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).instructions, 10U);
  EXPECT_EQ(program.frames.of(kH).instructions, 10U);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, GapEndsFramesAndReturnsFindThemAgain) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kG);
  program.call(kG + 0x10, kH);
  const std::uint64_t main = 0;
  program.machine.on_gap(program.position, program.position);
  program.ret(kH + 0x40, kG + 0x14);
  program.ret(kG + 0x40, kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.frames[0].end_how, CallEnd::GAP);
  const Frame& again = program.frames.of(kMain);
  EXPECT_EQ(again.how, CallKind::RESUMED);
  EXPECT_EQ(program.frames.of(kF).how, CallKind::RESUMED);
  EXPECT_EQ(program.frames.of(kF).continues, 1U);
  EXPECT_NE(again.id, main);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, AbortedTransactionEndsItsFrames) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.in_tx = true;
  program.call(kF + 0x10, kG);
  program.branch(BranchKind::TX_ABORT, kG + 0x10, kF + 0x80, 1);
  program.in_tx = false;
  program.ret(kF + 0x90, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::ABORT);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
}

// The only frame has replaced the one that jumped to it.
TEST(StackMachine, CodeAfterAnAbortIsOfAFrame) {
  Program program(Tails::REPLACED);
  program.in_tx = true;
  program.jump(kMain + 0x10, kF);
  program.branch(BranchKind::TX_ABORT, kF + 0x10, kG + 0x20, 3);
  program.in_tx = false;
  program.go_on(4);
  program.machine.on_disabled(program.position);
  program.enable(kH);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).self_instructions, 5U);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, HasALimitForOpenFrames) {
  Program program;
  for (std::size_t i = 0; i < CurrentStack::kMostFrames + 10; ++i) program.call(kF + 0x10, kF);
  program.finish();
  ASSERT_EQ(program.frames.anomalies.size(), 1U);
  EXPECT_EQ(program.frames.anomalies[0].kind, AnomalyKind::TOO_DEEP);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// The frame of an inner call is the only one then, and it has no caller to go back to.
TEST(StackMachine, KeepsInnerCallsAtTheLimitForOpenFrames) {
  for (const bool is_thunk : {false, true}) {
    SCOPED_TRACE(is_thunk);
    Program program;
    for (std::size_t i = 1; i < CurrentStack::kMostFrames; ++i) program.call(kF + 0x10, kF);
    program.call(kF + 0x20, kF + 0x30);
    program.ret(kF + 0x34, is_thunk ? kG : kF + 0x80);
    program.call(kF + 0x90, kG);
    program.ret(kG + 0x10, kF + 0x94);
    program.finish();
    EXPECT_EQ(program.frames.anomalies.at(0).kind, AnomalyKind::TOO_DEEP);
    EXPECT_EQ(program.self_sum(), program.position.instructions);
  }
}

// The scheduler's stack begins with a call of the code of the function that calls it.
TEST(StackMachine, KeepsInnerCallsOfASchedulersStack) {
  for (const std::uint64_t to : {kG, kF + 0x80, kMain + 0x40}) {
    SCOPED_TRACE(to);
    Program program;
    program.code.flags[kF] = CODE_MCALL;
    program.call(kMain + 0x10, kF);
    program.call(kF + 0x20, kF + 0x30);
    program.ret(kF + 0x34, to);
    program.call(to + 0x10, kH);
    program.ret(kH + 0x10, to + 0x14);
    program.finish();
    EXPECT_EQ(program.self_sum(), program.position.instructions);
  }
}

TEST(StackMachine, KeepsSystemCallsAtTheLimitForOpenFrames) {
  for (const std::uint64_t to : {kF + 0x22, kG + 0x10, kG}) {
    SCOPED_TRACE(to);
    Program program;
    for (std::size_t i = 1; i < CurrentStack::kMostFrames; ++i) program.call(kF + 0x10, kF);
    program.syscall(kF + 0x20);
    program.enable(to);
    program.ret(to + 8, kF + 0x14);
    program.finish();
    EXPECT_EQ(program.frames.anomalies.at(0).kind, AnomalyKind::TOO_DEEP);
    EXPECT_EQ(program.self_sum(), program.position.instructions);
  }
}

TEST(StackMachine, HasALimitForTailFrames) {
  Program program;
  program.call(kMain + 0x10, kF);
  for (std::uint32_t i = 0; i < NearBranches::kMostTails * 2; ++i)
    program.jump(kF + 0x10 + i % 2 * 0x1000, i % 2 == 0 ? kG : kF);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_LE(program.frames.of(kF).depth, static_cast<std::int32_t>(NearBranches::kMostTails) + 2);
  EXPECT_EQ(program.frames.of(kMain).end_how, CallEnd::END);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

}  // namespace
}  // namespace ptkit::tables::calls
