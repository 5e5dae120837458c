// System calls and signal handlers, as user code alone shows them.
#include <gtest/gtest.h>

#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

TEST(StackMachine, SystemCallIsALeaf) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.syscall(kF + 0x10);
  program.enable(kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  ASSERT_EQ(program.frames.frames.size(), 3U);
  EXPECT_EQ(program.frames.frames[0].how, CallKind::SYSCALL);
  EXPECT_EQ(program.frames.frames[0].function, kSyscallFunction);
  EXPECT_EQ(program.frames.frames[0].instructions, 0U);
}

// Packets end where the kernel is entered, at its entry. They begin anew in user code: behind SYSENTER, at a
// address that the kernel chooses, or in a signal handler.
TEST(StackMachine, KernelEntryIsLeftWhereUserCodeGoesOn) {
  constexpr std::uint64_t kVdso = 0x7000;
  constexpr std::uint64_t kEntry = 0xffffffff81000000;
  Program program;
  program.code.unknown = {kVdso};
  program.call(kMain + 0x10, kVdso);
  program.branch(BranchKind::SYSCALL, kVdso + 0x10, kEntry);
  program.machine.on_disabled(program.position);
  program.enable(kVdso + 0x16);
  program.branch(BranchKind::SYSCALL, kVdso + 0x30, kEntry);
  program.machine.on_disabled(program.position);
  program.enable(kG);
  program.ret(kG + 0x40, 0x9010);
  program.syscall(0x9018);
  program.enable(kVdso + 0x34);
  program.ret(kVdso + 0x40, kMain + 0x14);
  program.finish(0);
  EXPECT_EQ(program.frames.of(kEntry).instructions, 0U);
  EXPECT_EQ(program.frames.of(kEntry).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kG).how, CallKind::SIGNAL);
  EXPECT_EQ(program.frames.of(kVdso).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kMain).self_instructions, 10U);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, SignalHandlerReturnsToTheInterruptedCode) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.async(kF + 0x20);
  program.enable(kG);
  program.call(kG + 0x10, kH);
  program.ret(kH + 0x10, kG + 0x14);
  program.ret(kG + 0x40, 0x9010);  // to the restorer
  program.syscall(0x9018);
  program.enable(kF + 0x20);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).how, CallKind::SIGNAL);
  EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kG).call_ip, kF + 0x20);
  EXPECT_EQ(program.frames.of(kG).parent, program.frames.of(kF).id);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

TEST(StackMachine, SignalInASystemCallThatIsRepeated) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.syscall(kF + 0x10);
  program.enable(kG);
  program.ret(kG + 0x40, 0x9010);
  program.syscall(0x9018);
  program.enable(kF + 0x10);
  program.syscall(kF + 0x10);
  program.enable(kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kG).how, CallKind::SIGNAL);
  EXPECT_EQ(program.frames.of(kG).call_ip, kF + 0x10);
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

// The handler of the second signal is interrupted at its entry, by the first one.
TEST(StackMachine, SignalsThatAreDeliveredAtOnce) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.syscall(kF + 0x10);
  program.enable(kG);
  program.ret(kG + 0x40, 0x9010);
  program.syscall(0x9018);
  program.enable(kH);
  program.ret(kH + 0x40, 0x9010);
  program.syscall(0x9018);
  program.enable(kF + 0x14);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  for (const std::uint64_t handler : {kG, kH}) {
    EXPECT_EQ(program.frames.of(handler).how, CallKind::SIGNAL);
    EXPECT_EQ(program.frames.of(handler).end_how, CallEnd::RETURN);
    EXPECT_EQ(program.frames.of(handler).call_ip, kF + 0x14);
    EXPECT_EQ(program.frames.of(handler).parent, program.frames.of(kF).id);
  }
  EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

// A handler makes the kernel call a function at the interrupted address, as Go does.
TEST(StackMachine, CallThatAHandlerInserts) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.async(kF + 0x20);
  program.enable(kG);
  program.ret(kG + 0x40, 0x9010);
  program.syscall(0x9018);
  program.enable(kH);
  program.ret(kH + 0x40, kF + 0x20);
  program.call(kF + 0x30, kG);
  program.ret(kG + 0x40, kF + 0x34);
  program.ret(kF + 0x40, kMain + 0x14);
  program.finish();
  EXPECT_EQ(program.frames.of(kH).how, CallKind::SIGNAL);
  EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::RETURN);
  EXPECT_EQ(program.frames.of(kG).parent, program.frames.of(kF).id);
  EXPECT_TRUE(program.frames.anomalies.empty());
}

TEST(StackMachine, HandlerEndsByATailCall) {
  for (const Tails tails : {Tails::NESTED, Tails::REPLACED}) {
    Program program(tails);
    program.call(kMain + 0x10, kF);
    program.async(kF + 0x20);
    program.enable(kG);
    program.jump(kG + 0x10, kH);
    program.ret(kH + 0x10, 0x9010);
    program.syscall(0x9018);
    program.enable(kF + 0x20);
    program.ret(kF + 0x40, kMain + 0x14);
    program.finish();
    const bool nested = tails == Tails::NESTED;
    EXPECT_EQ(program.frames.of(kG).how, CallKind::SIGNAL);
    EXPECT_EQ(program.frames.of(kG).end_how, CallEnd::TAIL);
    EXPECT_EQ(program.frames.of(kH).how, nested ? CallKind::TAIL : CallKind::SIGNAL);
    EXPECT_EQ(program.frames.of(kH).end_how, CallEnd::RETURN);
    EXPECT_NE(program.frames.of(kH).flags & FRAME_EXACT, 0);
    EXPECT_EQ(program.frames.of(kF).end_how, CallEnd::RETURN);
    EXPECT_TRUE(program.frames.anomalies.empty());
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
