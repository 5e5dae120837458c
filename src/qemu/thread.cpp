#include "qemu/thread.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "qemu/process.h"

namespace ptkit::qemu {

__attribute__((tls_model("initial-exec"))) constinit thread_local Thread thread{};

namespace {

struct Scratch {
  SlotHeader header;
  Line line;
};
alignas(64) __attribute__((tls_model("initial-exec"))) thread_local Scratch scratch;

uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

SlotHeader* slot_at(uint32_t index) {
  ArenaHeader* const arena = process.arena;
  return reinterpret_cast<SlotHeader*>(reinterpret_cast<char*>(arena) + arena->slots_offset +
                                       index * arena->slot_bytes);
}

Line* line_at(const SlotHeader* slot, uint64_t number) {
  const uint64_t mask = process.arena->lines_bytes / kLineBytes - 1;
  return reinterpret_cast<Line*>(slot->lines_base) + (number & mask);
}

bool has_slot() { return thread.slot != nullptr && thread.slot != &scratch.header; }

void use_scratch() {
  thread.slot = &scratch.header;
  scratch.header.cursor = address(scratch.line.blocks);
}

// The current line is complete. A new one is begun; false if the recorder is gone.
bool publish_line(SlotHeader* slot) {
  const uint64_t lines = slot->lines + 1;
  __atomic_store_n(&slot->lines, lines, __ATOMIC_RELEASE);
  const uint64_t capacity = process.arena->lines_bytes / kLineBytes;
  // The line that is being filled needs a place too.
  if (lines + 1 > capacity && __atomic_load_n(&slot->consumed, __ATOMIC_ACQUIRE) < lines + 1 - capacity &&
      !wait_for_recorder(&slot->consumed, lines + 1 - capacity, &slot->waiting, &slot->wake))
    return false;
  return recording();
}

uint64_t begin_line(SlotHeader* slot) {
  Line* const line = line_at(slot, slot->lines);
  line->tsc = __rdtsc();
  return address(line->blocks);
}

SlotHeader* take_slot() {
  for (uint32_t i = 0; i < process.arena->slots; ++i) {
    SlotHeader* const slot = slot_at(i);
    uint32_t expected = SLOT_FREE;
    if (__atomic_compare_exchange_n(&slot->state, &expected, SLOT_TAKEN, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return slot;
  }
  __atomic_fetch_add(&process.arena->lost_threads, 1, __ATOMIC_RELAXED);
  return nullptr;
}

}  // namespace

void attach_thread() {
  SlotHeader* const slot = attach_process() ? take_slot() : nullptr;
  if (slot == nullptr) return use_scratch();
  slot->tid = static_cast<int32_t>(syscall(SYS_gettid));
  slot->lines_base = address(slot) + process.arena->lines_offset;
  slot->cursor = begin_line(slot);
  __atomic_store_n(&slot->state, SLOT_USED, __ATOMIC_RELEASE);
  thread.slot = slot;
}

void leave_thread() {
  if (!has_slot()) return;
  __atomic_store_n(&thread.slot->state, SLOT_ENDED, __ATOMIC_RELEASE);
  use_scratch();
}

void forget_thread() {
  thread.slot = nullptr;
  thread.interrupted = false;
}

uint64_t end_line(SlotHeader* slot) {
  if (has_slot() && publish_line(slot)) return begin_line(slot);
  use_scratch();
  return scratch.header.cursor;
}

void pad_line() {
  SlotHeader* const slot = thread.slot;
  if (!has_slot()) return use_scratch();
  const uint64_t end = address(line_at(slot, slot->lines) + 1);
  memset(reinterpret_cast<void*>(slot->cursor), 0xff, end - slot->cursor);
  const uint64_t cursor = end_line(slot);
  thread.slot->cursor = cursor;
}

void mark(MarkKind kind, uint64_t v0, uint64_t v1, uint64_t v2, uint64_t v3, uint64_t v4, uint64_t v5) {
  if (!has_slot()) return;
  if (thread.slot->cursor % kLineBytes != sizeof(uint64_t)) pad_line();
  if (!has_slot()) return;
  const MarkLine text{__rdtsc(), kMark, kind, {v0, v1, v2, v3, v4, v5}};
  memcpy(line_at(thread.slot, thread.slot->lines), &text, sizeof text);
  const uint64_t cursor = end_line(thread.slot);
  thread.slot->cursor = cursor;
}

}  // namespace ptkit::qemu
