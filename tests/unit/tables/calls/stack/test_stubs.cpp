// Stubs and retpolines: frames begin behind them, and their instructions are those of the caller.
#include <gtest/gtest.h>

#include "tables/calls/stack/stack_machine.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

// A function with a retpoline at +0x20: a call over a loop to +0x30, where a return branches.
constexpr std::uint64_t kCallOver = 0x20;
constexpr std::uint64_t kOver = 0x30;

void branch_by_retpoline(Program& program, std::uint64_t function, std::uint64_t to) {
  program.branch(BranchKind::CALL, function + kCallOver, function + kOver, 1);
  program.branch(BranchKind::RETURN, function + kOver + 4, to, 2);
}

TEST(Stubs, AreTheCallers) {
  Program program;
  program.code.flags[kG] = CODE_STUB;
  program.call(kMain + 0x10, kG);
  program.jump_indirect(kG, kF);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 2U);
  const Frame& function = program.frames.frames[0];
  EXPECT_EQ(function.entry_ip, kF);
  EXPECT_EQ(function.how, CallKind::PLT);
  EXPECT_EQ(function.call_ip, kMain + 0x10);
  EXPECT_EQ(function.return_ip, kMain + 0x14);
  EXPECT_EQ(function.instructions, 10U);
  EXPECT_EQ(function.begin.stream_instructions, 20U);
  EXPECT_EQ(program.frames.of(kMain).self_instructions, 25U);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// The function that jumps has the instructions of the stub, also where it ends there.
TEST(Stubs, AreTheFunctionsThatJump) {
  for (const Tails tails : {Tails::NESTED, Tails::REPLACED}) {
    Program program(tails);
    program.code.flags[kG] = CODE_STUB;
    program.call(kMain + 0x10, kH);
    program.jump(kH + 0x10, kG);
    program.jump_indirect(kG, kF);
    program.ret(kF + 0x40, kMain + 0x14);
    program.finish();
    ASSERT_EQ(program.frames.frames.size(), 3U);
    EXPECT_EQ(program.frames.of(kF).how, CallKind::TAIL);
    EXPECT_EQ(program.frames.of(kF).call_ip, kH + 0x10);
    EXPECT_EQ(program.frames.of(kF).instructions, 10U);
    EXPECT_EQ(program.frames.of(kH).self_instructions, 20U);
    EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::TAIL);
  }
}

// The stub of F is interrupted by code that calls F: that lies above the caller.
TEST(Stubs, MayBeInterrupted) {
  Program program;
  program.code.flags[kG] = CODE_STUB;
  program.call(kMain + 0x10, kG);
  program.branch(BranchKind::ASYNC, kG, kH, 1);
  program.call(kH + 0x10, kF);
  program.ret(kF + 0x40, kH + 0x14);
  program.branch(BranchKind::IRET, kH + 0x20, kG);
  program.jump_indirect(kG, kF);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 4U);
  const Frame& outer = program.frames.frames[2];
  EXPECT_EQ(outer.entry_ip, kF);
  EXPECT_EQ(outer.how, CallKind::PLT);
  EXPECT_EQ(outer.new_instructions, 10U);
  EXPECT_EQ(program.frames.frames[0].new_instructions, 10U);
  EXPECT_EQ(program.frames.of(kH).parent, program.frames.of(kMain).id);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

// Code that is not traced returns to the caller.
TEST(Stubs, HaveAFrameIfTheFunctionIsNotTraced) {
  Program program;
  program.code.flags[kG] = CODE_STUB;
  program.call(kMain + 0x10, kG);
  program.branch(BranchKind::JUMP_INDIRECT, kG, std::nullopt);
  program.machine.on_disabled(program.position);
  program.enable(kMain + 0x14);
  program.call(kMain + 0x20, kF);
  program.ret(kF + 0x10, kMain + 0x24);
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 3U);
  EXPECT_EQ(program.frames.frames[0].entry_ip, kG);
  EXPECT_EQ(program.frames.frames[0].instructions, 0U);
  EXPECT_EQ(program.frames.frames[0].parent, program.frames.of(kMain).id);
  EXPECT_EQ(program.frames.of(kF).parent, program.frames.of(kMain).id);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(Stubs, AreLeftByLongjmp) {
  Program program;
  program.code.flags[kG] = CODE_STUB;
  program.code.flags[kF] = CODE_SETJMP;
  program.call(kMain + 0x10, kF);
  program.ret(kF + 0x10, kMain + 0x14);
  program.call(kMain + 0x20, kG);
  program.async(kG);
  program.enable(kH);  // a handler
  program.jump_indirect(kH + 0x20, kMain + 0x14);
  program.jump(kMain + 0x30, 0x5000);
  program.ret(0x5010, 0x9004);
  program.finish();
  EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::LONGJMP);
  EXPECT_EQ(program.frames.of(0x5000).how, CallKind::TAIL);
  EXPECT_EQ(program.frames.of(0x5000).call_ip, kMain + 0x30);
}

TEST(Stubs, ResolverEndsWhereTheFunctionBegins) {
  Program program;
  program.code.flags[kG] = CODE_STUB;
  program.code.flags[kH] = CODE_RESOLVER;
  program.call(kMain + 0x10, kG);
  program.jump_indirect(kG, kH);
  program.jump_indirect(kH + 0x80, kF);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::TAIL);
  EXPECT_EQ(program.frames.of(kH).instructions, 10U);
  EXPECT_EQ(program.frames.of(kF).how, CallKind::PLT);
  EXPECT_EQ(program.frames.of(kF).parent, program.frames.of(kMain).id);
  EXPECT_EQ(program.frames.of(kMain).self_instructions, 25U);
}

// The dynamic linker for 32-bit programs pushes the address of the function, and returns to it.
TEST(Stubs, ResolverMayReturnToTheFunction) {
  Program program;
  program.code.flags[kG] = CODE_STUB;
  program.code.flags[kH] = CODE_RESOLVER;
  program.call(kMain + 0x10, kG);
  program.jump_indirect(kG, kH);
  program.ret(kH + 0x80, kF);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kF).parent, program.frames.of(kMain).id);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

// -mindirect-branch=thunk-inline, at the end of a function, and where an interrupt comes within.
TEST(Stubs, RetpolinesToFunctionsAreNoAnomalies) {
  for (const bool is_known : {false, true}) {
    for (const bool is_interrupted : {false, true}) {
      Program program;
      if (is_known) program.code.retpoline_calls = {kF + kCallOver};
      program.call(kMain + 0x10, kF);
      program.branch(BranchKind::CALL, kF + kCallOver, kF + kOver, 1);
      if (is_interrupted) {
        program.branch(BranchKind::ASYNC, kF + kOver, kH, 1);
        program.branch(BranchKind::IRET, kH + 0x20, kF + kOver);
      }
      program.branch(BranchKind::RETURN, kF + kOver + 4, kG, 2);
      program.ret(kG + 0x10, kMain + 0x14);
      program.finish();
      EXPECT_EQ(program.frames.of(kG).depth, is_known ? 2 : 1);  // else it may be a thunk, which is no frame
      EXPECT_TRUE(program.frames.anomalies.empty());
    }
  }
}

TEST(Stubs, TheFirstEntryOfAPltLeadsToTheResolver) {
  constexpr std::uint64_t kFirst = 0x5000;
  Program program;
  program.code.flags[kG] = CODE_STUB;
  program.code.flags[kFirst] = CODE_STUB | CODE_LAZY;
  program.call(kMain + 0x10, kG);
  program.jump_indirect(kG, kG + 0x10);
  program.jump(kG + 0x14, kFirst);
  program.jump_indirect(kFirst + 0x10, kH + 0x40);  // no symbol says what this is
  program.jump_indirect(kH + 0x80, kF);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 3U);
  EXPECT_EQ(program.frames.of(kH + 0x40).end_how, CallEnd::TAIL);
  EXPECT_EQ(program.frames.of(kF).how, CallKind::PLT);
  EXPECT_EQ(program.frames.of(kF).parent, program.frames.of(kMain).id);
}

TEST(Retpolines, OfAThunkAreIndirectCalls) {
  Program program;
  program.code.flags[kG] = CODE_STUB | CODE_THUNK;
  program.code.retpoline_calls = {kG};
  program.call(kMain + 0x10, kG);
  program.call(kG, kG + 0x20);
  program.ret(kG + 0x24, kF);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 2U);
  EXPECT_EQ(program.frames.frames[0].entry_ip, kF);
  EXPECT_EQ(program.frames.frames[0].how, CallKind::CALL);
  EXPECT_EQ(program.frames.frames[0].instructions, 10U);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

// A call to where the function calls over a loop: main calls F, and so on.
TEST(Retpolines, WithinAFunctionAreIndirectCalls) {
  Program program;
  program.code.retpolines = {kMain + 0x18};
  program.code.retpoline_calls = {kMain + kCallOver};
  for (int i = 0; i < 3; ++i) {
    program.call(kMain + 0x40, kMain + 0x18);
    branch_by_retpoline(program, kMain, kF);
    program.ret(kF + 0x40, kMain + 0x44);
  }
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 4U);
  const Frame& last = program.frames.of(kF);
  EXPECT_EQ(last.how, CallKind::CALL);
  EXPECT_EQ(last.end_how, CallEnd::RETURN);
  EXPECT_EQ(last.call_ip, kMain + 0x40);
  EXPECT_EQ(last.return_ip, kMain + 0x44);
  EXPECT_EQ(last.instructions, 10U);
  EXPECT_EQ(last.parent, program.frames.of(kMain).id);
  EXPECT_EQ(program.frames.of(kMain).self_instructions, 3 * 13U + 5);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(Retpolines, WithinAFunctionAreIndirectJumps) {
  Program program;
  program.code.retpoline_calls = {kH + kCallOver};
  program.call(kMain + 0x10, kH);
  branch_by_retpoline(program, kH, kH + 0x80);  // a switch
  branch_by_retpoline(program, kH, kF);         // a tail call
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 3U);
  EXPECT_EQ(program.frames.of(kF).how, CallKind::TAIL);
  EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::TAIL);
  EXPECT_EQ(program.frames.of(kH).self_instructions, 6U);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(Retpolines, WithinAFunctionMayReturn) {
  Program program;
  program.code.retpoline_calls = {kF + kCallOver, kMain + kCallOver};
  program.call(kMain + 0x10, kF);
  program.call(kF + 0x10, kF);
  branch_by_retpoline(program, kF, kF + 0x14);
  branch_by_retpoline(program, kF, kMain + 0x14);
  branch_by_retpoline(program, kMain, 0x5014);
  program.finish();
  EXPECT_EQ(program.frames.frames[0].end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.frames[1].end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.frames[1].parent, program.frames.of(kMain).id);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

// No code says so: the return goes elsewhere.
TEST(Retpolines, OfAnUnknownFormAreFoundByTheirReturn) {
  Program program;
  program.call(kMain + 0x40, kMain + 0x18);
  branch_by_retpoline(program, kMain, kF);
  program.ret(kF + 0x40, kMain + 0x44);
  program.call(kMain + 0x50, kG);
  program.branch(BranchKind::CALL, kG, kG + 0x20, 1);
  program.branch(BranchKind::RETURN, kG + 0x24, kF, 2);
  program.ret(kF + 0x40, kMain + 0x54);
  program.call(kMain + 0x60, kH);
  program.go_on(20);
  branch_by_retpoline(program, kH, kF);
  program.ret(kF + 0x40, kMain + 0x64);
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 5U);
  for (const std::size_t call : {0U, 1U}) {
    EXPECT_EQ(program.frames.frames[call].entry_ip, kF);
    EXPECT_EQ(program.frames.frames[call].how, CallKind::CALL);
    EXPECT_EQ(program.frames.frames[call].instructions, 10U);
    EXPECT_EQ(program.frames.frames[call].parent, program.frames.of(kMain).id);
  }
  EXPECT_EQ(program.frames.frames[2].how, CallKind::TAIL);
  EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::TAIL);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(Retpolines, MayBeInterrupted) {
  constexpr std::uint64_t kKernel = 0xffff'ffff'8000'0000;
  Program program;
  program.code.flags[kG] = CODE_STUB | CODE_THUNK;
  program.code.retpoline_calls = {kG};
  program.call(kMain + 0x10, kG);
  program.branch(BranchKind::CALL, kG, kG + 0x20, 1);
  program.branch(BranchKind::ASYNC, kG + 0x20, kKernel + 0x2000, 1);
  program.branch(BranchKind::IRET, kKernel + 0x2010, kG + 0x20);
  program.branch(BranchKind::RETURN, kG + 0x24, kF, 2);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_TRUE(program.frames.anomalies.empty());
  ASSERT_EQ(program.frames.frames.size(), 3U);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kF).return_ip, kMain + 0x14);
  EXPECT_EQ(program.frames.of(kKernel + 0x2000).how, CallKind::INTERRUPT);
  EXPECT_EQ(program.frames.of(kKernel + 0x2000).parent, program.frames.of(kMain).id);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(Retpolines, OfAnUnknownFormMayBeInterrupted) {
  constexpr std::uint64_t kKernel = 0xffff'ffff'8000'0000;
  Program program;
  program.call(kMain + 0x10, kG);
  program.branch(BranchKind::CALL, kG, kG + 0x20, 1);
  program.branch(BranchKind::ASYNC, kG + 0x20, kKernel + 0x2000, 1);
  program.branch(BranchKind::IRET, kKernel + 0x2010, kG + 0x20);
  program.branch(BranchKind::RETURN, kG + 0x24, kF, 2);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.frames.of(kF).return_ip, kMain + 0x14);
  // The inner call has the interrupt's frame, and so one of its own.
  EXPECT_EQ(program.frames.frames.size(), 4U);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(Retpolines, ReturnThunkReturnsForItsCaller) {
  for (const bool is_known : {false, true}) {
    Program program;
    if (is_known) {
      program.code.flags[kG] = CODE_STUB | CODE_THUNK;
      program.code.retpoline_calls = {kG};
    }
    program.call(kMain + 0x10, kF);
    program.jump(kF + 0x40, kG);
    program.call(kG, kG + 0x20);
    program.ret(kG + 0x24, kMain + 0x14);
    program.finish();
    ASSERT_EQ(program.frames.frames.size(), 2U);
    EXPECT_EQ(program.frames.frames[0].entry_ip, kF);
    EXPECT_EQ(program.frames.frames[0].end_how, CallEnd::RETURN);
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
