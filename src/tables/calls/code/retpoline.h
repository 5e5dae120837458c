// Finds retpolines by their code: indirect branches that a call and a return make up.
//
//         call over               the call, of which the return address is not used
//   loop: pause; lfence; jmp loop
//   over: mov %rax,(%rsp)         or lea 8(%rsp),%rsp: the return address below it is the target
//         ret
#pragma once

#include <cstdint>

#include "code/image/image.h"

namespace ptkit::tables::calls {

// Whether the instruction at `ip` is the call of a retpoline.
[[nodiscard]] bool is_retpoline_call(const code::image::CodeView& code, std::uint64_t ip);

// Where code that may load a branch target begins to branch: the address of its first branch instruction, if
// that is a direct call or jump behind `most` other instructions at most; or else 0.
struct FirstBranch {
  std::uint64_t ip = 0;
  std::uint64_t jump_to = 0;  // of a jump: its target
};
[[nodiscard]] FirstBranch first_branch(const code::image::CodeView& code, std::uint64_t ip, unsigned most);

}  // namespace ptkit::tables::calls
