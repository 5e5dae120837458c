// Stacks that are parked and go on: coroutines and goroutines.
#include <gtest/gtest.h>

#include "unit/calls/machine.h"

namespace ptkit::calls {
namespace {

TEST(StackMachine, CoroutinesHaveStacksOfTheirOwn) {
  constexpr std::uint64_t kSwap = 0x5000;
  Program program;
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
  EXPECT_EQ(program.frames.of(kG).end_how, EndHow::END);
  EXPECT_EQ(program.frames.of(kG).self_instructions, 20U);
  EXPECT_EQ(program.frames.of(kMain).self_instructions, 25U);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.place.instructions);
}

// Two coroutines wait behind the same call; what called them differs.
TEST(StackMachine, ReturnsTellWhichCoroutineGoesOn) {
  constexpr std::uint64_t kSwap = 0x5000;
  constexpr std::uint64_t kYield = 0x6000;
  Program program;
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
  EXPECT_EQ(program.self_sum(), program.place.instructions);
}

constexpr std::uint64_t kPark = 0x5000;      // mcall()
constexpr std::uint64_t kSchedule = 0x6000;  // on a stack of its own
constexpr std::uint64_t kGo = 0x7000;        // gogo()

void yield(Program& program, std::uint64_t from) {
  program.code.flags[kPark] = CODE_PARK;
  program.code.flags[kGo] = CODE_SWITCH | CODE_LEAVE;
  program.call(from, kPark);
  program.call(kPark + 0x10, kSchedule);
  program.call(kSchedule + 0x10, kGo);
}

TEST(StackMachine, GoroutinesCallTheSchedulerOnAStackOfItsOwn) {
  Program program;
  program.call(kMain + 0x10, kF);
  yield(program, kF + 0x10);
  program.jump_indirect(kGo + 0x10, kG);  // a new goroutine
  yield(program, kG + 0x10);
  program.jump_indirect(kGo + 0x10, kF + 0x14);
  program.ret(kF + 0x20, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).end_how, EndHow::RETURN);
  EXPECT_EQ(program.frames.of(kF).self_instructions, 20U);
  EXPECT_EQ(program.frames.of(kPark).parent, program.frames.of(kG).id);
  EXPECT_EQ(program.frames.of(kSchedule).flags & FRAME_PARENT, 0);
  EXPECT_EQ(program.frames.of(kSchedule).end_how, EndHow::SWITCH);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.place.instructions);
}

// Its stack was parked by another thread.
TEST(StackMachine, GoroutineThatWaitsInAnotherThread) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kH);
  yield(program, kH + 0x10);
  program.jump_indirect(kGo + 0x10, kH + 0x14);
  program.ret(kH + 0x20, kG + 0x14);
  program.ret(kG + 0x20, kMain + 0x24);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).end_how, EndHow::END);
  EXPECT_EQ(program.frames.of(kG).end_how, EndHow::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.place.instructions);
}

// recover(): the scheduler's stack goes on within a function of the goroutine.
TEST(StackMachine, RecoveredPanicEndsFrames) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kG);
  yield(program, kG + 0x10);
  program.jump_indirect(kGo + 0x10, kF + 0x60);
  program.ret(kF + 0x70, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, EndHow::UNWIND);
  EXPECT_EQ(program.frames.of(kF).end_how, EndHow::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.place.instructions);
}

}  // namespace
}  // namespace ptkit::calls
