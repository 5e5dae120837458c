// Far calls, jumps and returns within user code.
#include <gtest/gtest.h>

#include "tables/calls/stack/stack_machine.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

TEST(FarTransfers, ToAFunctionBeginAFrame) {
  for (const BranchKind kind : {BranchKind::FAR_JUMP, BranchKind::FAR_RETURN, BranchKind::IRET}) {
    Program program;
    program.call(kMain + 0x10, kF);
    program.branch(kind, kF + 0x10, kG);
    program.call(kG + 0x10, kH);
    program.ret(kH + 0x10, kG + 0x14);
    program.ret(kG + 0x40, kMain + 0x14);
    program.finish();
    EXPECT_EQ(program.frames.of(kG).how, CallKind::TAIL);
    EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::RETURN);
    EXPECT_EQ(program.frames.of(kG).call_ip, kF + 0x10);
    EXPECT_EQ(program.frames.of(kG).parent, program.frames.of(kF).id);
    EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::TAIL);
    EXPECT_EQ(program.frames.of(kF).self_instructions, 10U);
    EXPECT_TRUE(program.frames.anomalies.empty());
  }
}

// Code of another size is entered by a far return, and goes back behind that, again and again.
TEST(FarTransfers, GoBackBehindTheTransfer) {
  // A symbol may stand there.
  for (const std::uint64_t back : {kMain + 0x24, kMain + GivenCode::kSize}) {
    Program program;
    for (int i = 0; i < 3; ++i) {
      program.branch(BranchKind::FAR_RETURN, back - GivenCode::kInsn, kG);
      program.call(kG + 0x10, kH);
      program.ret(kH + 0x10, kG + 0x14);
      program.branch(BranchKind::FAR_JUMP, kG + 0x20, back);
    }
    program.finish();
    EXPECT_EQ(program.frames.of(kG).depth, 1);
    EXPECT_EQ(program.frames.of(kG).how, CallKind::TAIL);
    EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::RETURN);
    EXPECT_NE(program.frames.of(kG).flags & FRAME_EXACT, 0);
    EXPECT_EQ(program.frames.of(kG).self_instructions, 20U);
    EXPECT_EQ(program.frames.frames.size(), 7U);
    EXPECT_TRUE(program.frames.anomalies.empty());
  }
}

TEST(FarTransfers, GoBackIntoTheFunction) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.branch(BranchKind::FAR_JUMP, kF + 0x10, kG);
  program.call(kG + 0x10, kH);
  program.branch(BranchKind::FAR_JUMP, kH + 0x10, kF + 0x80);
  program.ret(kF + 0x90, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::UNWIND);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kF).self_instructions, 20U);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

// As WoW64's system calls: the far jump back goes to where a near call returns to.
TEST(FarTransfers, MayReturnForANearCall) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.branch(BranchKind::FAR_JUMP, kF, kG);
  program.branch(BranchKind::FAR_JUMP, kG + 0x80, kMain + 0x14);
  program.call(kMain + 0x20, kH);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::TAIL);
  EXPECT_EQ(program.frames.of(kH).parent, program.frames.of(kMain).id);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(FarTransfers, CallsEndWithFarReturns) {
  Program program;
  program.code.far_calls = {kMain + 0x10};
  program.branch(BranchKind::FAR_CALL, kMain + 0x10, kF);
  program.call(kF + 0x10, kG);
  program.ret(kG + 0x10, kF + 0x14);
  program.branch(BranchKind::FAR_RETURN, kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).how, CallKind::CALL);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kF).return_ip, kMain + 0x14);
  EXPECT_EQ(program.frames.of(kG).parent, program.frames.of(kF).id);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(FarTransfers, OfInterruptsAreNoCalls) {
  constexpr std::uint64_t kKernel = 0xffff'ffff'8000'0000;
  Program program;
  program.branch(BranchKind::FAR_CALL, kMain + 0x10, kKernel + 0x2000);
  program.branch(BranchKind::IRET, kKernel + 0x2010, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kKernel + 0x2000).how, CallKind::INTERRUPT);
  EXPECT_EQ(program.frames.of(kKernel + 0x2000).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(FarTransfers, WithinAFunctionAreNoFrames) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.branch(BranchKind::FAR_JUMP, kF + 0x10, kF + 0x20);
  program.branch(BranchKind::FAR_RETURN, kF + 0x24, kF + 0x40);
  program.ret(kF + 0x44, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.frames.size(), 2U);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

}  // namespace
}  // namespace ptkit::tables::calls
