// Stacks that are suspended and go on: coroutines and goroutines.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

constexpr std::uint64_t kSwap = 0x5000;
constexpr std::uint64_t kYield = 0x6000;

// The trace has the process from its begin.
struct Whole : Program {
  Whole() { enable(kMain); }
};

// A stream of a processor of which no threads are known: PIP packets tell processes apart.
TEST(StackMachine, ProcessesOfUnknownThreadsShareNoStack) {
  Program program;
  for (const trace::SpaceId space : {1U, 2U}) {
    program.machine.on_owner({.space = space}, program.position);
    program.enable(kMain);
    program.call(kMain + 0x10, kF);
    program.async(kF + 8);
  }
  for (const trace::SpaceId space : {1U, 2U}) {
    program.machine.on_owner({.space = space}, program.position);
    program.enable(kF + 8);
    program.ret(kF + 0x10, kMain + 0x14);
    program.async(kMain + 0x18);
  }
  program.finish();
  std::vector<std::pair<trace::SpaceId, std::uint64_t>> ended;
  for (std::size_t i = 0; i < program.frames.frames.size(); ++i) {
    const Frame& frame = program.frames.frames[i];
    EXPECT_NE(frame.flags & FRAME_EXACT, 0);
    EXPECT_EQ(frame.depth, frame.entry_ip == kF ? 1 : 0);
    ended.emplace_back(program.frames.owners[i].space, frame.entry_ip);
  }
  std::ranges::sort(ended);
  EXPECT_EQ(ended, (decltype(ended){{1, kMain}, {1, kF}, {2, kMain}, {2, kF}}));
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, CoroutinesHaveStacksOfTheirOwn) {
  Whole program;
  program.code.flags[kSwap] = CODE_SWITCH;
  for (const std::uint64_t at : {std::uint64_t{0x10}, std::uint64_t{0x20}}) {
    program.call(kMain + at, kSwap);
    program.ret(kSwap + 0x10, at == 0x10 ? kF : kG + 0x24);  // f() begins, and goes on within g()
    if (at == 0x10) program.call(kF + 0x10, kG);
    program.call(kG + at + 0x10, kSwap);
    program.ret(kSwap + 0x10, kMain + at + 4);
  }
  program.finish();
  EXPECT_EQ(program.frames.of(kF).depth, 0);
  EXPECT_EQ(program.frames.of(kF).flags & FRAME_PARENT, 0);
  EXPECT_EQ(program.frames.of(kG).parent, program.frames.of(kF).id);
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::END);
  EXPECT_EQ(program.frames.of(kG).self_instructions, 20U);
  EXPECT_EQ(program.frames.of(kMain).self_instructions, 25U);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// Two coroutines wait behind the same call; what called them differs.
TEST(StackMachine, ReturnsTellWhichCoroutineGoesOn) {
  Whole program;
  program.code.flags[kSwap] = CODE_SWITCH;
  for (const std::uint64_t coroutine : {kF, kG}) {
    program.call(kMain + 0x10, kSwap);
    program.ret(kSwap + 0x10, coroutine);
    program.call(coroutine + 0x10, kYield);
    program.call(kYield + 0x10, kSwap);
    program.ret(kSwap + 0x10, kMain + 0x14);
  }
  program.call(kMain + 0x10, kSwap);
  program.ret(kSwap + 0x10, kYield + 0x14);
  program.ret(kYield + 0x20, kG + 0x14);  // out of turn
  program.call(kG + 0x20, kH);
  program.ret(kH + 0x10, kG + 0x24);
  program.finish();
  EXPECT_EQ(program.frames.of(kH).parent, program.frames.of(kG).id);
  EXPECT_NE(program.frames.of(kYield).flags & FRAME_EXACT, 0);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

constexpr std::uint64_t kMcall = 0x5000;     // mcall()
constexpr std::uint64_t kSchedule = 0x6000;  // on a stack of its own
constexpr std::uint64_t kGo = 0x7000;        // gogo()

void yield(Program& program, std::uint64_t from) {
  program.code.flags[kMcall] = CODE_MCALL;
  program.code.flags[kGo] = CODE_SWITCH | CODE_LEAVE;
  program.call(from, kMcall);
  program.call(kMcall + 0x10, kSchedule);
  program.call(kSchedule + 0x10, kGo);
}

TEST(StackMachine, GoroutinesCallTheSchedulerOnAStackOfItsOwn) {
  Whole program;
  program.call(kMain + 0x10, kF);
  yield(program, kF + 0x10);
  program.jump_indirect(kGo + 0x10, kG);  // a new goroutine
  yield(program, kG + 0x10);
  program.jump_indirect(kGo + 0x10, kF + 0x14);
  program.ret(kF + 0x20, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kF).self_instructions, 20U);
  EXPECT_EQ(program.frames.of(kMcall).parent, program.frames.of(kG).id);
  EXPECT_EQ(program.frames.of(kSchedule).flags & FRAME_PARENT, 0);
  EXPECT_EQ(program.frames.of(kSchedule).end_how, CallEnd::SWITCH);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// Its stack was suspended by another thread.
TEST(StackMachine, GoroutineThatWaitsInAnotherThread) {
  Whole program;
  program.machine.set_shares_stacks(true);
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kH);
  yield(program, kH + 0x10);
  program.jump_indirect(kGo + 0x10, kH + 0x14);
  program.ret(kH + 0x20, kG + 0x14);
  program.ret(kG + 0x20, kMain + 0x24);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::END);
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::RETURN);
  // Where it began is not known.
  EXPECT_EQ(program.frames.of(kG).how, CallKind::ROOT);
  EXPECT_EQ(program.frames.of(kG).flags & FRAME_BEGIN_SEEN, 0);
  ASSERT_EQ(program.frames.anomalies.size(), 1U);
  EXPECT_EQ(program.frames.anomalies[0].kind, AnomalyKind::UNDECIDED);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// recover(): the scheduler's stack goes on within a function of the goroutine.
TEST(StackMachine, RecoveredPanicEndsFrames) {
  Whole program;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kG);
  yield(program, kG + 0x10);
  program.jump_indirect(kGo + 0x10, kF + 0x60);
  program.ret(kF + 0x70, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::UNWIND);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// How often a function was called; frames of which the begin was not seen do not count.
std::size_t calls_of(const Frames& frames, std::uint64_t entry) {
  return static_cast<std::size_t>(std::ranges::count_if(
      frames.frames, [entry](const Frame& frame) { return frame.entry_ip == entry && frame.is_call(); }));
}

// A scheduler resumes two fibers that wait behind calls of their own. The name of swap() says nothing.
void run_fibers(Program& program, std::uint64_t kind) {
  const auto swap = [&](std::uint64_t from, std::uint64_t to) {
    program.call(from, kSwap);
    kind == 0 ? program.ret(kSwap + 0x10, to) : program.jump_indirect(kSwap + 0x10, to);
  };
  for (const std::uint64_t fiber : {kF, kG}) {
    swap(kMain + 0x10, fiber);
    program.call(fiber + 0x10, kYield);
    swap(kYield + (fiber == kF ? 0x10 : 0x20), kMain + 0x14);
  }
  for (int round = 0; round < 3; ++round) {
    for (const std::uint64_t fiber : {kF, kG}) {
      const std::uint64_t at = fiber == kF ? 0x10 : 0x20;
      swap(kMain + 0x10, kYield + at + 4);
      program.ret(kYield + 0x30, fiber + 0x14);
      program.call(fiber + 0x10, kYield);
      swap(kYield + at, kMain + 0x14);
    }
  }
}

TEST(StackMachine, FunctionsThatLoadTheStackPointerSwitchStacks) {
  for (const std::uint64_t kind : {0U, 1U}) {
    Whole program;
    program.code.loads.insert(kSwap);
    if (kind == 1) program.code.flags[kSwap] = CODE_SWITCH;  // a jump to an entry may be a tail call
    run_fibers(program, kind);
    program.finish();
    EXPECT_EQ(calls_of(program.frames, kF), 1U);
    EXPECT_EQ(calls_of(program.frames, kYield), 8U);
    EXPECT_EQ(calls_of(program.frames, kSwap), 16U);
    EXPECT_EQ(program.frames.frames.size(), 27U);
    for (const Frame& frame : program.frames.frames) EXPECT_NE(frame.flags & FRAME_EXACT, 0);
    EXPECT_TRUE(program.frames.anomalies.empty());
    EXPECT_EQ(program.self_sum(), program.position.instructions);
  }
}

// The same fibers, where other streams may have gone on with them.
TEST(StackMachine, StacksThatMayGoOnElsewhereAreUndecided) {
  Whole program;
  program.machine.set_shares_stacks(true);
  program.code.loads.insert(kSwap);
  run_fibers(program, 0);
  program.finish();
  EXPECT_EQ(calls_of(program.frames, kYield), 8U);
  EXPECT_EQ(calls_of(program.frames, kSwap), 16U);
  EXPECT_FALSE(program.frames.anomalies.empty());
  for (const Frame& frame : program.frames.frames) {
    const bool is_certain = (frame.flags & FRAME_UNDECIDED) == 0;
    EXPECT_EQ((frame.flags & FRAME_EXACT) != 0, is_certain);
    EXPECT_TRUE(!is_certain || (frame.entry_ip != kF && frame.entry_ip != kG));
  }
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// Two fibers wait behind one call, and have the same callers.
TEST(StackMachine, FibersThatReturnsDoNotTellApartAreUndecided) {
  Whole program;
  program.code.flags[kSwap] = CODE_SWITCH;
  for (int fiber = 0; fiber < 2; ++fiber) {
    program.call(kMain + 0x10, kSwap);
    program.ret(kSwap + 0x10, kF);
    program.call(kF + 0x10, kSwap);
    program.ret(kSwap + 0x10, kMain + 0x14);
  }
  program.call(kMain + 0x10, kSwap);
  program.ret(kSwap + 0x10, kF + 0x14);
  program.call(kF + 0x20, kG);
  program.ret(kG + 0x10, kF + 0x24);
  program.call(kF + 0x10, kSwap);
  program.ret(kSwap + 0x10, kMain + 0x14);
  program.finish();
  EXPECT_EQ(calls_of(program.frames, kF), 2U);
  EXPECT_EQ(calls_of(program.frames, kSwap), 6U);
  ASSERT_EQ(program.frames.anomalies.size(), 1U);
  EXPECT_EQ(program.frames.anomalies[0].kind, AnomalyKind::UNDECIDED);
  for (const Frame& frame : program.frames.frames) {
    const bool is_certain = (frame.flags & FRAME_EXACT) != 0;
    EXPECT_TRUE(frame.entry_ip == kSwap || is_certain == (frame.entry_ip != kF));
  }
}

// Within one function: the stack goes on behind the jump, not behind a call.
TEST(StackMachine, StacksAreSwitchedWithinAFunction) {
  Program program;
  program.code.flags[kYield] = CODE_SWITCH;
  program.code.flags[kMain] = CODE_SWITCH;
  program.enable(kMain);
  for (const std::uint64_t fiber : {kF, kG}) {
    program.jump_indirect(kMain + 0x20, fiber);
    program.call(fiber + 0x10, kYield);
    program.jump_indirect(kYield + 0x10, kMain + 0x24);
  }
  for (const std::uint64_t fiber : {kG, kF, kF}) {
    program.jump_indirect(kMain + 0x20, kYield + 0x14);
    program.ret(kYield + 0x20, fiber + 0x14);
    program.call(fiber + 0x10, kYield);
    program.jump_indirect(kYield + 0x10, kMain + 0x24);
  }
  program.finish();
  EXPECT_EQ(calls_of(program.frames, kF), 1U);
  EXPECT_EQ(calls_of(program.frames, kG), 1U);
  EXPECT_EQ(calls_of(program.frames, kMain), 1U);
  EXPECT_EQ(calls_of(program.frames, kYield), 5U);
  EXPECT_EQ(program.frames.frames.size(), 8U);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// Each coroutine calls setjmp() where it yields, and jumps to where another one did.
TEST(StackMachine, LongjmpGoesToOtherStacks) {
  constexpr std::uint64_t kSetjmp = 0x7000;
  constexpr std::uint64_t kLongjmp = 0x8000;
  Whole program;
  program.code.flags[kSetjmp] = CODE_SETJMP;
  program.code.flags[kSwap] = CODE_SWITCH;
  const auto yield_by = [&](std::uint64_t function, std::uint64_t to) {
    program.call(function + 0x10, kSetjmp);
    program.ret(kSetjmp + 0x10, function + 0x14);
    program.call(function + 0x20, kLongjmp);
    program.jump_indirect(kLongjmp + 0x10, to);
  };
  for (const std::uint64_t fiber : {kF, kG}) {  // are begun by another means
    program.call(kMain + 0x10, kSetjmp);
    program.ret(kSetjmp + 0x10, kMain + 0x14);
    program.call(kMain + 0x30, kSwap);
    program.ret(kSwap + 0x10, fiber);
    yield_by(fiber, kMain + 0x14);
  }
  for (int round = 0; round < 3; ++round) {
    for (const std::uint64_t fiber : {kF, kG}) {
      yield_by(kMain, fiber + 0x14);
      yield_by(fiber, kMain + 0x14);
    }
  }
  program.finish();
  EXPECT_EQ(calls_of(program.frames, kMain), 1U);
  EXPECT_EQ(calls_of(program.frames, kF), 1U);
  EXPECT_EQ(calls_of(program.frames, kG), 1U);
  EXPECT_EQ(calls_of(program.frames, kLongjmp), 14U);
  const auto left = std::ranges::count(program.frames.frames, CallEnd::LONGJMP, &Frame::end_how);
  EXPECT_EQ(left, 12 + 2);  // two calls of swap() end so, too; two of longjmp() wait in f() and g()
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::END);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// Another thread of the process goes on with a stack, in the same stream.
TEST(StackMachine, StacksGoOnInOtherThreads) {
  Whole program;
  program.code.flags[kSwap] = CODE_SWITCH;
  program.machine.on_owner({0, 1, 1, 0}, program.position);
  program.enable(kMain);
  program.call(kMain + 0x10, kSwap);
  program.ret(kSwap + 0x10, kF);
  program.call(kF + 0x10, kSwap);
  program.ret(kSwap + 0x10, kMain + 0x14);
  program.machine.on_owner({0, 1, 2, 0}, program.position);
  program.enable(kH);
  program.call(kH + 0x10, kSwap);
  program.ret(kSwap + 0x10, kF + 0x14);
  program.call(kF + 0x20, kG);
  program.ret(kG + 0x10, kF + 0x24);
  program.finish();
  EXPECT_EQ(calls_of(program.frames, kF), 1U);
  EXPECT_EQ(program.frames.of(kG).parent, program.frames.of(kF).id);
  EXPECT_EQ(program.frames.of(kF).self_instructions, 25U);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// Control comes to a function elsewhere than at its first instruction.
TEST(StackMachine, FunctionsThatAreEnteredInsideAreNotCalled) {
  Whole program;
  program.call(kMain + 0x10, kF + 0x20);
  program.jump_indirect(kF + 0x30, kG + 0x20);
  program.finish();
  EXPECT_EQ(calls_of(program.frames, kMain), 1U);
  EXPECT_TRUE(program.frames.frames.size() == 3);
  EXPECT_EQ(program.frames.frames[0].flags & FRAME_BEGIN_SEEN, 0);
  EXPECT_EQ(program.frames.frames[1].flags & FRAME_BEGIN_SEEN, 0);
  EXPECT_NE(program.frames.frames[0].flags & FRAME_UNDECIDED, 0);
}

// The trace ends before the first instruction of a call.
TEST(StackMachine, CallsWithoutAnInstructionAreNotCounted) {
  Whole program;
  program.call(kMain + 0x10, kF);
  program.finish(0);
  EXPECT_EQ(calls_of(program.frames, kF), 0U);
  EXPECT_EQ(program.frames.of(kF).instructions, 0U);
}

// More stacks than are looked at: any of them may have gone on.
TEST(AmbiguousReturn, KeepsCandidatesThatAreNotLookedAt) {
  constexpr std::size_t kStacks = 100;
  FrameIds ids;
  Frames frames;
  ThreadStack stack(ids, nullptr, frames, {});
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < kStacks; ++i) candidates.emplace_back(stack, 0, i);
  candidates.push_back(Candidate::unknown(stack));
  AmbiguousReturn<int> undecided;
  for (const std::vector<Candidate>& each : {candidates, std::vector<Candidate>(2, candidates.front())}) {
    undecided.begin(each, 0);
    const auto decision = undecided.decide();
    EXPECT_FALSE(decision.is_certain);
    EXPECT_EQ(decision.others.size(), each.size());
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
