// Control that goes on in a frame below: longjmp() and exceptions.
#include <gtest/gtest.h>

#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

TEST(StackMachine, LongjmpGoesToTheCallerOfSetjmp) {
  Program program;
  program.code.flags[kH] = CODE_SETJMP;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kH);
  program.ret(kH + 0x10, kF + 0x14);
  program.call(kF + 0x20, kG);
  program.call(kG + 0x20, kG);
  program.jump_indirect(kG + 0x30, kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::LONGJMP);
  EXPECT_NE(program.frames.of(kG).flags & FRAME_EXACT, 0);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(StackMachine, ExceptionEndsInTheFrameWithTheLandingPad) {
  Program program;
  program.code.pads[kF + 0x80] = kF + 0x10;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x20, kF);  // a call without landing pad
  program.call(kF + 0x10, kG);
  program.call(kG + 0x10, kH);
  program.jump_indirect(kH + 0x30, kF + 0x80);
  program.ret(kF + 0x90, kF + 0x24);
  program.ret(kF + 0x90, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::UNWIND);
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::UNWIND);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(StackMachine, LandingPadBehindACallThatDoesNotReturn) {
  Program program;
  program.code.pads[kF + 0x24] = kF + 0x10;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kF);
  program.call(kF + 0x20, kG);  // throws
  program.call(kG + 0x10, kH);
  program.ret(kH + 0x30, kF + 0x24);
  program.ret(kF + 0x90, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::UNWIND);
  EXPECT_EQ(program.frames.frames[2].end_how, CallEnd::UNWIND);  // inner f(): its call has no landing pad
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

// As pthread_cancel() runs cleanup functions, from the innermost frame outwards.
TEST(StackMachine, LongjmpToOneAddressGoesOnOutwards) {
  Program program;
  program.code.flags[kH] = CODE_SETJMP;
  program.call(kMain + 0x10, kF);
  for (int depth = 0; depth < 3; ++depth) {
    program.call(kF + 0x10, kH);
    program.ret(kH + 0x10, kF + 0x14);
    if (depth != 2) program.call(kF + 0x20, kF);
  }
  for (int depth = 0; depth < 3; ++depth) {
    program.call(kF + 0x30, kG);
    program.jump_indirect(kG + 0x30, kF + 0x14);
  }
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  std::size_t left = 0;
  for (const Frame& frame : program.frames.frames) left += frame.end_how == CallEnd::LONGJMP ? 1 : 0;
  EXPECT_EQ(left, 5U);  // g() three times, f() twice
  EXPECT_EQ(program.frames.of(kF).depth, 1);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  for (const Anomaly& anomaly : program.frames.anomalies) EXPECT_EQ(anomaly.kind, AnomalyKind::UNDECIDED);
  EXPECT_EQ(program.frames.anomalies.size(), 2U);  // returns tell where the last one went
}

TEST(StackMachine, LongjmpGoesToTheLastCallOfSetjmp) {
  Program program;
  program.code.flags[kH] = CODE_SETJMP;
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kH);
  program.ret(kH + 0x10, kF + 0x14);
  program.call(kF + 0x20, kF);
  for (int round = 0; round < 3; ++round) {
    program.call(kF + 0x10, kH);
    program.ret(kH + 0x10, kF + 0x14);
    program.call(kF + 0x30, kG);
    program.jump_indirect(kG + 0x30, kF + 0x14);
  }
  program.ret(kF + 0x40, kF + 0x24);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::LONGJMP);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  for (const Anomaly& anomaly : program.frames.anomalies) EXPECT_EQ(anomaly.kind, AnomalyKind::UNDECIDED);
  EXPECT_EQ(program.frames.anomalies.size(), 2U);  // returns tell where the last one went
}

// Three frames of f() have called setjmp(). The returns that follow tell to which of them longjmp() went.
TEST(StackMachine, ReturnsTellWhereLongjmpWentTo) {
  for (std::uint64_t target = 0; target < 3; ++target) {
    Program program;
    program.code.flags[kH] = CODE_SETJMP;
    program.call(kMain + 0x10, kF);
    for (int depth = 0; depth < 3; ++depth) {
      program.call(kF + 0x10, kH);
      program.ret(kH + 0x10, kF + 0x14);
      program.call(kF + 0x20, depth == 2 ? kG : kF);
    }
    program.jump_indirect(kG + 0x30, kF + 0x14);
    program.call(kF + 0x60, kH + 0x100);  // and returns
    program.ret(kH + 0x110, kF + 0x64);
    program.syscall(kF + 0x68);
    program.enable(kF + 0x6c);
    for (std::uint64_t depth = target; depth > 0; --depth) program.ret(kF + 0x70, kF + 0x24);
    program.ret(kF + 0x70, kMain + 0x14);
    program.finish();
    std::uint64_t left = 0;
    for (const Frame& frame : program.frames.frames) {
      if (frame.end_how != CallEnd::LONGJMP) continue;
      ++left;
      EXPECT_NE(frame.flags & FRAME_EXACT, 0);
    }
    EXPECT_EQ(left, 3 - target) << target;  // g(), and the frames of f() above the target
    EXPECT_TRUE(program.frames.anomalies.empty()) << target;
    EXPECT_EQ(program.self_sum(), program.position.instructions);
  }
}

// Code that is not traced calls longjmp().
TEST(StackMachine, LongjmpFromElsewhere) {
  Program program;
  program.code.flags[kH] = CODE_SETJMP;
  program.call(kMain + 0x10, kF);
  for (int depth = 0; depth < 2; ++depth) {
    program.call(kF + 0x10, kH);
    program.ret(kH + 0x10, kF + 0x14);
    program.call(kF + 0x20, depth == 1 ? kG : kF);
  }
  program.enable(kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).self_instructions, 30U);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, LongjmpIsDecidedOnAtAGap) {
  Program program;
  program.code.flags[kH] = CODE_SETJMP;
  program.call(kMain + 0x10, kF);
  for (int depth = 0; depth < 2; ++depth) {
    program.call(kF + 0x10, kH);
    program.ret(kH + 0x10, kF + 0x14);
    program.call(kF + 0x20, depth == 1 ? kG : kF);
  }
  program.jump_indirect(kG + 0x30, kF + 0x14);
  program.call(kF + 0x60, kG);
  program.machine.on_gap(program.position, program.position);
  program.finish(0);
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::GAP);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::GAP);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

}  // namespace
}  // namespace ptkit::tables::calls
