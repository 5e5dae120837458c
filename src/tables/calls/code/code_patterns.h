// What code does with the stack pointer: code that switches stacks is known by that, not by its name.
#pragma once

#include "base/bytes.h"

namespace ptkit::tables::calls {

// The function at the begin of `code` keeps the stack pointer and loads it from elsewhere: hand-made fibers,
// jump_fcontext(), swapcontext() do so. `is_function`: all of the code is the function's; or else it ends
// with the first return or jump that has no condition.
[[nodiscard]] bool switches_stacks(base::Bytes code, bool is_function);

// The instructions of `code` load the stack pointer with what is not of their own function's frame.
[[nodiscard]] bool loads_stack_pointer(base::Bytes code);

}  // namespace ptkit::tables::calls
