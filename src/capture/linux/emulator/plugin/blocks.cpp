// The callbacks for every block that the guest executes.
#include <x86intrin.h>

#include "capture/linux/emulator/plugin/thread.h"

// The fast path is written in assembly: a compiler saves registers here that only the slow path needs.
// Generated code has the CPU's state in RBP (tcg/i386: TCG_AREG0); the slow path gets it as its third
// argument.
asm(R"(
  .text
  .macro ptkit_block_function name, line_bytes
  .p2align 6
  .globl \name
  .hidden \name
  .type \name, @function
\name:
  mov ptkit_cursor@gottpoff(%rip), %rax
  mov %fs:(%rax), %rcx
  test $\line_bytes - 1, %cl
  jz 1f
  mov %esi, (%rcx)
  add $4, %rcx
  mov %rcx, %fs:(%rax)
  ret
1:
  mov %rbp, %rdx
  jmp ptkit_first_block
  .size \name, .-\name
  .endm
  ptkit_block_function ptkit_block, 256
  ptkit_block_function ptkit_short_line_block, 64
  .p2align 4
  .globl ptkit_timed_block
  .hidden ptkit_timed_block
  .type ptkit_timed_block, @function
ptkit_timed_block:
  mov %rbp, %rdx
  jmp ptkit_add_timed_block
  .size ptkit_timed_block, .-ptkit_timed_block
)");
static_assert(ptkit::capture::plugin::kLongLineBytes == 256 && ptkit::capture::plugin::kShortLineBytes == 64);

namespace {

void attach(const uint64_t* env) {
  if (ptkit::capture::plugin::thread.slot != nullptr) return;
  ptkit::capture::plugin::thread.env = env;
  ptkit::capture::plugin::attach_thread();
}

template <typename T>
void write(const T& value) {
  *reinterpret_cast<T*>(ptkit_cursor) = value;
  ptkit_cursor += sizeof(T);
}

}  // namespace

extern "C" {

// The first block of a line.
__attribute__((visibility("hidden"), used)) void ptkit_first_block(unsigned, uint64_t number,
                                                                   const uint64_t* env) {
  attach(env);
  ptkit::capture::plugin::next_line(__rdtsc());
  write(static_cast<uint32_t>(number));
}

__attribute__((visibility("hidden"), used)) void ptkit_add_timed_block(unsigned, uint64_t number,
                                                                       const uint64_t* env) {
  using ptkit::capture::plugin::kShortLineBytes;
  attach(env);
  const uint64_t now = __rdtsc();
  const auto* const line =
      reinterpret_cast<const ptkit::capture::plugin::Line*>(ptkit_cursor & ~(kShortLineBytes - 1));
  const bool full =
      ptkit_cursor == 0 ||
      ptkit_cursor == reinterpret_cast<uint64_t>(line->timed + ptkit::capture::plugin::kLineTimedBlocks);
  if (full || (now - line->tsc) >> 32U != 0) ptkit::capture::plugin::next_line(now);
  write(ptkit::capture::plugin::TimedBlock{static_cast<uint32_t>(number), static_cast<uint32_t>(now),
                                           env[ptkit::capture::plugin::kRsp]});
}
}
