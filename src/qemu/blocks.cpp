// What is called for every block that the guest executes.
#include "qemu/blocks.h"

#include <x86intrin.h>

#include "qemu/thread.h"

// The emulator's generated code has the CPU's state in RBP (tcg/i386: TCG_AREG0). These hand it on as the
// third argument.
asm(R"(
  .text
  .globl ptkit_block_entry
  .hidden ptkit_block_entry
  .type ptkit_block_entry, @function
ptkit_block_entry:
  mov %rbp, %rdx
  jmp ptkit_block
  .size ptkit_block_entry, .-ptkit_block_entry
  .globl ptkit_timed_block_entry
  .hidden ptkit_timed_block_entry
  .type ptkit_timed_block_entry, @function
ptkit_timed_block_entry:
  mov %rbp, %rdx
  jmp ptkit_timed_block
  .size ptkit_timed_block_entry, .-ptkit_timed_block_entry
)");

namespace ptkit::qemu {
namespace {

constexpr uint64_t kLineMask = kLineBytes - 1;

__attribute__((noinline, cold)) void first_block(const uint64_t* env) {
  thread.env = env;
  attach_thread();
}

__attribute__((noinline)) void next_line(SlotHeader* slot) {
  const uint64_t cursor = end_line(slot);
  thread.slot->cursor = cursor;
}

template <typename T>
void write(uint64_t at, const T& value) {
  *reinterpret_cast<T*>(at) = value;
}

}  // namespace
}  // namespace ptkit::qemu

extern "C" {

using ptkit::qemu::SlotHeader;
using ptkit::qemu::thread;

__attribute__((visibility("hidden"), used)) void ptkit_block(unsigned, void* number, const uint64_t* env) {
  if (__builtin_expect(thread.slot == nullptr, 0)) ptkit::qemu::first_block(env);
  SlotHeader* const slot = thread.slot;
  uint64_t cursor = slot->cursor;
  ptkit::qemu::write(cursor, static_cast<uint32_t>(reinterpret_cast<uintptr_t>(number)));
  cursor += sizeof(uint32_t);
  slot->cursor = cursor;
  if (__builtin_expect((cursor & ptkit::qemu::kLineMask) == 0, 0)) ptkit::qemu::next_line(slot);
}

__attribute__((visibility("hidden"), used)) void ptkit_timed_block(unsigned, void* number,
                                                                   const uint64_t* env) {
  if (__builtin_expect(thread.slot == nullptr, 0)) ptkit::qemu::first_block(env);
  ptkit::qemu::add_timed_block(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(number)));
}
}

namespace ptkit::qemu {

void add_timed_block(uint32_t number) {
  SlotHeader* slot = thread.slot;
  const uint64_t now = __rdtsc();
  const auto* const line = reinterpret_cast<const Line*>(slot->cursor & ~kLineMask);
  if (__builtin_expect(((now - line->tsc) >> 32U) != 0, 0)) {
    pad_line();
    slot = thread.slot;
  }
  write(slot->cursor, TimedBlock{number, static_cast<uint32_t>(now)});
  slot->cursor += sizeof(TimedBlock);
  if (__builtin_expect((slot->cursor & kLineMask) == 0, 0)) next_line(slot);
}

}  // namespace ptkit::qemu
