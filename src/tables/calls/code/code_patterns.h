// Code that is known by its bytes, not by its name: retpolines, and functions that switch stacks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "base/bytes.h"
#include "code/image/image.h"

namespace ptkit::tables::calls {

[[nodiscard]] inline bool begins_with(base::Bytes code, std::initializer_list<std::uint8_t> bytes) noexcept {
  return code.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), code.begin());
}

// Whether the instruction at `ip` is the call of a retpoline: an indirect branch that a call and a return
// make up.
//
//         call over               the call, of which the return address is not used
//   loop: pause; lfence; jmp loop
//   over: mov %rax,(%rsp)         or lea 8(%rsp),%rsp: the return address below it is the target
//         ret
[[nodiscard]] bool is_retpoline_call(const code::image::CodeView& code, std::uint64_t ip);

// Where code that may load a branch target begins to branch: the address of its first branch instruction, if
// that is a direct call or jump after `most` other instructions at most; or else 0.
struct FirstBranch {
  std::uint64_t ip = 0;
  std::uint64_t jump_to = 0;  // of a jump: its target
};
[[nodiscard]] FirstBranch first_branch(const code::image::CodeView& code, std::uint64_t ip, unsigned most);

// The function at the begin of `code` keeps the stack pointer and loads it from elsewhere: hand-made fibers,
// jump_fcontext(), swapcontext() do so. `is_function`: all of the code is the function's; or else it ends
// with the first return or jump that has no condition.
[[nodiscard]] bool switches_stacks(base::Bytes code, bool is_function);

// The instructions of `code` load the stack pointer, but not from their own function's frame.
[[nodiscard]] bool loads_stack_pointer(base::Bytes code);

}  // namespace ptkit::tables::calls
