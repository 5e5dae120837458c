// Code that is not traced, and code that nothing has called.
#include <gtest/gtest.h>

#include "tables/calls/stack/stack_machine.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

// Packets are disabled where the return leads to.
void return_to_untraced(Program& program, std::uint64_t from, std::uint64_t to) {
  constexpr std::uint64_t kInsns = 10;
  program.go_on(kInsns - 1);
  BranchStep step = program.step_of(BranchKind::RETURN, from, to);
  step.leaves = true;
  program.machine.on_branch(step);
  program.end_branch();
  program.machine.on_disabled(program.position);
}

// A driver of which a filter traces the code alone.
TEST(UntracedCode, IsNoFunction) {
  Program program;
  for (int i = 0; i < 4; ++i) {
    program.enable(kF);
    program.call(kF + 0x10, kG);
    program.ret(kG + 0x10, kF + 0x14);
    return_to_untraced(program, kF + 0x40, kH + 0x14);
  }
  program.finish(0);
  ASSERT_EQ(program.frames.frames.size(), 8U);
  for (const Frame& frame : program.frames.frames) {
    EXPECT_EQ(frame.entry_ip == kF ? 0 : 1, frame.depth);
    EXPECT_EQ(frame.end_how, CallEnd::RETURN);
    EXPECT_TRUE(frame.entry_ip == kF || frame.entry_ip == kG);
  }
  EXPECT_EQ(program.frames.frames[1].how, CallKind::ROOT);  // nothing was before it
  EXPECT_EQ(program.frames.frames[3].how, CallKind::CALL);
  EXPECT_EQ(program.frames.frames[3].flags & FRAME_EXACT, 0);
  EXPECT_EQ(program.frames.of(kF).instructions, 30U);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// A function that is not traced calls one that is: as qsort() does.
TEST(UntracedCode, CallsBack) {
  Program program;
  program.branch(BranchKind::CALL, kMain + 0x10, kG);
  program.machine.on_disabled(program.position);
  for (int i = 0; i < 3; ++i) {
    program.enable(kF);
    return_to_untraced(program, kF + 0x40, kG + 0x54);
  }
  program.enable(kMain + 0x14);
  program.call(kMain + 0x20, kH);
  program.ret(kH + 0x10, kMain + 0x24);
  program.finish();
  EXPECT_EQ(program.frames.frames.size(), 6U);
  EXPECT_EQ(program.frames.of(kF).how, CallKind::CALL);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kF).parent, program.frames.of(kG).id);
  EXPECT_EQ(program.frames.of(kG).self_instructions, 0U);
  EXPECT_EQ(program.frames.of(kH).parent, program.frames.of(kMain).id);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

// Neither the function that calls back, nor those that it calls, have names.
TEST(UntracedCode, CallsBackCodeWithoutNames) {
  constexpr std::uint64_t kUnknown = 0x7000;
  Program program;
  program.code.unknown = {kUnknown};
  program.code.untraced = {kG};
  program.code.not_behind_calls = {kUnknown + 0x20};
  program.branch(BranchKind::CALL, kMain + 0x10, kG);
  for (const std::uint64_t ip : {kUnknown + 0x20, kUnknown + 0x60}) {  // no call stands before the first one
    program.machine.on_disabled(program.position);
    program.enable(ip);
    program.call(kUnknown + 0x70, kF);
    program.ret(kF + 0x10, kUnknown + 0x74);
    return_to_untraced(program, kUnknown + 0x80, kG + 0x54);
  }
  program.enable(kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).self_instructions, 0U);
  EXPECT_EQ(program.frames.of(kG).instructions, 60U);
  const Frame& called = program.frames.of(kUnknown + 0x20);
  EXPECT_EQ(called.how, CallKind::CALL);
  EXPECT_EQ(called.instructions, 30U);
  EXPECT_EQ(called.flags & FRAME_EXACT, 0);
  ASSERT_EQ(program.frames.anomalies.size(), 1U);
  EXPECT_EQ(program.frames.anomalies[0].kind, AnomalyKind::ENTERED_ELSEWHERE);
  EXPECT_EQ(program.frames.anomalies[0].to_ip, kUnknown + 0x60);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// Of a function in a kernel, the filter has no more than its own code: neither callers nor return thunks.
TEST(UntracedCode, ReturnsByAThunkThatIsNotTraced) {
  constexpr std::uint64_t kThunk = 0x9000;
  Program program;
  program.code.flags[kThunk] = CODE_RETURN;
  for (int i = 0; i < 3; ++i) {
    program.enable(kF);
    program.call(kF + 0x10, kG);
    program.jump(kG + 0x10, kThunk);
    program.machine.on_disabled(program.position);
    program.enable(kF + 0x14);
    program.jump(kF + 0x20, kThunk);
    program.machine.on_disabled(program.position);
  }
  program.finish(0);
  ASSERT_EQ(program.frames.frames.size(), 6U);
  EXPECT_TRUE(program.frames.anomalies.empty());
  for (const Frame& frame : program.frames.frames) {
    EXPECT_EQ(frame.depth, frame.entry_ip == kF ? 0 : 1);
    EXPECT_TRUE(frame.is_call());
  }
}

TEST(UntracedCode, ThatDidNotCallIsAnAnomaly) {
  Program program;
  program.call(kMain + 0x10, kF);
  return_to_untraced(program, kF + 0x40, kG + 0x54);
  program.finish(0);
  ASSERT_EQ(program.frames.anomalies.size(), 1U);
  EXPECT_EQ(program.frames.anomalies[0].kind, AnomalyKind::RETURN_ELSEWHERE);
  EXPECT_EQ(program.frames.of(kG).id, UINT64_MAX);
}

// Each thread has a function of its own for its outermost code; what that calls has none.
TEST(UnknownCode, IsThatOfItsThreadAtTheBottom) {
  constexpr std::uint64_t kUnknown = 0x7000;
  Program program;
  program.code.unknown = {kUnknown};
  for (const std::int64_t tid : {7, 8}) {
    program.machine.on_owner({0, 1, tid, 0}, program.position);
    program.enable(kUnknown + 0x10);
    program.call(kUnknown + 0x20, kF);
    program.branch(BranchKind::CALL_INDIRECT, kF + 0x10, std::nullopt);
  }
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 6U);
  for (const Frame& frame : program.frames.frames) {
    const auto tid = static_cast<std::uint32_t>(frame.segment) + 6;
    const std::uint32_t expected = frame.depth == 0 ? GivenCode::kFirstThread + tid : kUnknownFunction;
    EXPECT_TRUE(frame.depth == 1 || frame.function == expected);
  }
}

// push target; ret: in the first function of a program.
TEST(PushedTargets, OfTheFirstFrameAreJumps) {
  constexpr std::uint64_t kTarget = kMain + 0x20;
  for (const bool is_named : {false, true}) {
    Program program;
    if (is_named) {
      program.code.flags[kMain] = CODE_START;
    } else {
      program.code.not_behind_calls = {kTarget};
    }
    program.enable(kMain);
    program.ret(kMain + 0x10, kTarget);
    program.call(kMain + 0x30, kF);
    program.ret(kF + 0x10, kMain + 0x34);
    program.finish();
    ASSERT_EQ(program.frames.frames.size(), 2U);
    EXPECT_EQ(program.frames.of(kF).depth, 1);
    EXPECT_EQ(program.frames.of(kMain).how, CallKind::ROOT);
    ASSERT_EQ(program.frames.anomalies.size(), 1U);
    EXPECT_EQ(program.frames.anomalies[0].kind, AnomalyKind::RETURN_ELSEWHERE);
    EXPECT_EQ(program.frames.anomalies[0].to_ip, kTarget);
  }
}

TEST(PushedTargets, ToAFunctionAreTailCalls) {
  Program program;
  program.code.flags[kMain] = CODE_START;
  program.enable(kMain);
  program.ret(kMain + 0x10, kF);
  program.call(kF + 0x10, kG);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).how, CallKind::TAIL);
  EXPECT_EQ(program.frames.of(kF).parent, program.frames.of(kMain).id);
  EXPECT_EQ(program.frames.of(kG).depth, 2);
  EXPECT_EQ(program.frames.anomalies.size(), 1U);
}

// Each returns to the next one: none lies below another one.
TEST(PushedTargets, OfAChainFollowEachOther) {
  Program program;
  program.code.flags[kMain] = CODE_START;
  program.enable(kMain);
  program.ret(kMain + 0x10, kF + 0x20);
  program.ret(kF + 0x24, kG + 0x20);
  program.ret(kG + 0x24, kH + 0x20);
  program.call(kH + 0x30, kF);
  program.finish();
  EXPECT_EQ(program.frames.anomalies.size(), 3U);
  for (const Frame& frame : program.frames.frames)
    EXPECT_EQ(frame.depth, frame.entry_ip == kF && frame.how == CallKind::CALL ? 1 : 0);
  EXPECT_EQ(program.frames.frames.size(), 5U);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// A trace that begins at the entry of a function: it returns to a caller that is traced.
TEST(PushedTargets, AreNoReturns) {
  Program program;
  program.enable(kF);
  program.ret(kF + 0x10, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).parent, program.frames.of(kMain).id);
  EXPECT_EQ(program.frames.of(kMain).depth, -1);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

}  // namespace
}  // namespace ptkit::tables::calls
