// Facts of the code that call stacks depend on: where functions begin, and which of them change the stack.
#pragma once

#include <cstdint>
#include <optional>

#include "trace/bundle.h"

namespace ptkit::tables::calls {

// Numbers of functions that have no code in the trace.
inline constexpr std::uint32_t kUnknownFunction = 0;
inline constexpr std::uint32_t kSyscallFunction = 1;
inline constexpr std::uint32_t kInterruptFunction = 2;
inline constexpr std::uint32_t kFirstFunction = 3;

enum CodeFlag : std::uint32_t {
  CODE_KNOWN = 1,          // a function is known to cover the address
  CODE_ENTRY = 2,          // the address is the entry of its function
  CODE_STUB = 4,           // a stub that jumps to a function: a PLT entry or an import thunk
  CODE_COLD = 8,           // of a part that the compiler split off: it has the stack of its function
  CODE_RETURN = 16,        // a return thunk that is a return instruction alone
  CODE_RESOLVER = 32,      // the dynamic linker's resolver of lazily bound functions
  CODE_SETJMP = 64,        // setjmp() or one of its kin
  CODE_LANDING_PAD = 128,  // control goes there when an exception is caught or cleanups run
  CODE_SWITCH = 1024,      // may continue on another stack, by its name or its code: swapcontext()
  CODE_LEAVE = 2048,       // the same, and the stack before it is not used again: setcontext()
  CODE_MCALL = 4096,       // calls a scheduler that has a stack of its own: Go's mcall()
  CODE_LAZY = 512,         // the first entry of a PLT, which jumps to the resolver
  CODE_CLONE = 256,        // where threads and processes begin: clone(), fork(), vfork(), ret_from_fork()
  // Bits 13, 14 and 15: EdgeFlag. The following ones are of the kernel.
  CODE_TASK_SWITCH = 1U << 16U,  // goes on with another thread's stack: __switch_to_asm()
  CODE_SCHEDULER = 1U << 17U,    // calls that: __schedule()
  CODE_TASK_END = 1U << 18U,     // switches to another thread for good: do_task_dead()
  CODE_THUNK = 1U << 19U,        // an indirect branch by a retpoline begins there
  CODE_START = 1U << 21U,        // where programs begin: no code has called it
};

// Of the function that covers an address.
struct CodeLocation {
  std::uint64_t entry = 0;  // address of the function, or the address itself if no function is known
  std::uint32_t function = kUnknownFunction;
  std::uint32_t flags = 0;

  [[nodiscard]] bool is(CodeFlag flag) const noexcept { return (flags & flag) != 0; }
};

// The code of a space in a time.
struct CodeVersion {
  std::uint32_t number = 0;              // of all that differ
  std::uint64_t until = trace::kTscMax;  // the time in TSC ticks from which on the code may be another
};

// One address space at one time. Answers are the same for the same address until the next follow().
class CodeFacts {
 public:
  virtual ~CodeFacts() = default;
  // The following questions are about this space and time.
  virtual CodeVersion follow(trace::SpaceId space, std::uint64_t tsc) = 0;
  [[nodiscard]] virtual CodeLocation at(std::uint64_t ip) = 0;
  // The function that a call of `ip` enters. It begins there if no function is known.
  [[nodiscard]] virtual std::uint32_t function_at(std::uint64_t ip) = 0;
  // The outermost code of a thread, if no function is known to have it.
  [[nodiscard]] virtual std::uint32_t function_of_thread(std::int64_t tid) = 0;
  // The imported function that the indirect branch at `ip` leads to by its import slot, if the code there is
  // not known. kUnknownFunction: the branch reads no slot.
  [[nodiscard]] virtual std::uint32_t import_at(std::uint64_t ip) {
    static_cast<void>(ip);
    return kUnknownFunction;
  }
  // Whether code is known at an address.
  [[nodiscard]] virtual bool has_code(std::uint64_t ip) {
    static_cast<void>(ip);
    return true;
  }
  // The address after the instruction at `ip`; 0: there is no instruction.
  [[nodiscard]] virtual std::uint64_t end_of(std::uint64_t ip) = 0;
  // Whether the call at `ip` is that of a retpoline: the return address that it stores is not used.
  [[nodiscard]] virtual bool is_retpoline_call(std::uint64_t ip) = 0;
  // Whether the code at `ip`, within a function, branches by a retpoline.
  [[nodiscard]] virtual bool begins_retpoline(std::uint64_t ip) = 0;
  // Whether the instruction before `ip` may be a call. True if no code is known there.
  [[nodiscard]] virtual bool follows_call(std::uint64_t ip) = 0;
  // CALL far, not an interrupt.
  [[nodiscard]] virtual bool is_far_call(std::uint64_t ip) = 0;
  // The code before the branch at `ip`, from `entry` on if that is near, loads the stack pointer.
  [[nodiscard]] virtual bool loads_stack_pointer(std::uint64_t entry, std::uint64_t ip) = 0;
  // Where control goes when the call at `ip` throws; none if the function has no such table.
  [[nodiscard]] virtual std::optional<std::uint64_t> landing_pad_of(std::uint64_t ip) = 0;
};

}  // namespace ptkit::tables::calls
