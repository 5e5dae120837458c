// Code that switches stacks is known by what it does with the stack pointer.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tables/calls/code/code_patterns.h"

namespace ptkit::tables::calls {
namespace {

using Code = std::vector<std::uint8_t>;

bool switches(const Code& code) { return switches_stacks(code, false); }

TEST(StackPointer, CodeThatKeepsItAndLoadsAnotherSwitchesStacks) {
  // push rbp; mov [rdi], rsp; mov rsp, rsi; pop rbp; ret
  EXPECT_TRUE(switches({0x55, 0x48, 0x89, 0x27, 0x48, 0x89, 0xf4, 0x5d, 0xc3}));
  // mov rax, rsp; mov rsp, rdi; pop r8; jmp r8: jump_fcontext()
  EXPECT_TRUE(switches({0x48, 0x89, 0xe0, 0x48, 0x89, 0xfc, 0x41, 0x58, 0x41, 0xff, 0xe0}));
  // mov [rsi], rsp; mov rsp, [rdi]; pop rax; jmp rax: co_switch()
  EXPECT_TRUE(switches({0x48, 0x89, 0x26, 0x48, 0x8b, 0x27, 0x58, 0xff, 0xe0}));
  // xchg rsp, rsi; ret. xchg rax, rsp; ret
  EXPECT_TRUE(switches({0x48, 0x87, 0xf4, 0xc3}));
  EXPECT_TRUE(switches({0x48, 0x94, 0xc3}));
  // mov [rdx + 0xa0], rsp; mov rsp, [rsi + 0xa0]; ret: swapcontext()
  EXPECT_TRUE(switches({0x48, 0x89, 0xa2, 0xa0, 0, 0, 0, 0x48, 0x8b, 0xa6, 0xa0, 0, 0, 0, 0xc3}));
}

TEST(StackPointer, FramesOfAFunctionAreItsOwn) {
  EXPECT_FALSE(switches({0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xec, 0x5d, 0xc3}));  // mov rsp, rbp
  EXPECT_FALSE(switches({0x48, 0x89, 0xe3, 0x48, 0x89, 0xdc, 0xc3}));  // mov rbx, rsp; mov rsp, rbx
  // mov rax, rsp; mov [rbp - 0x28], rax; mov rcx, [rbp - 0x28]; mov rsp, rcx
  EXPECT_FALSE(
      switches({0x48, 0x89, 0xe0, 0x48, 0x89, 0x45, 0xd8, 0x48, 0x8b, 0x4d, 0xd8, 0x48, 0x89, 0xcc, 0xc3}));
  EXPECT_FALSE(switches({0x49, 0x94, 0x41, 0x5c, 0xc3}));        // xchg r12, rax; pop r12
  EXPECT_FALSE(switches({0x48, 0x89, 0x64, 0x24, 0x08, 0xc3}));  // mov [rsp + 8], rsp
  EXPECT_FALSE(switches({}));
  EXPECT_FALSE(switches({0x48, 0x89}));
}

// longjmp() loads it, and keeps nothing.
TEST(StackPointer, CodeThatLoadsItGoesToAnotherFrame) {
  const Code code{0x48, 0x8b, 0x67, 0x30, 0xff, 0xe2};  // mov rsp, [rdi + 0x30]; jmp rdx
  EXPECT_TRUE(loads_stack_pointer(code));
  EXPECT_FALSE(switches(code));
  EXPECT_FALSE(loads_stack_pointer(Code{0xff, 0xe2}));
}

// What follows a jump belongs to the function if its bounds are known.
TEST(StackPointer, BoundsOfTheFunctionCount) {
  const Code code{0xeb, 0x00, 0x48, 0x89, 0x27, 0x48, 0x89, 0xf4, 0xc3};
  EXPECT_FALSE(switches_stacks(code, false));
  EXPECT_TRUE(switches_stacks(code, true));
}

}  // namespace
}  // namespace ptkit::tables::calls
