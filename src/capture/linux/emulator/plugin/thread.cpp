#include "capture/linux/emulator/plugin/thread.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "capture/linux/emulator/plugin/process.h"

__attribute__((tls_model("initial-exec"),
               visibility("hidden"))) constinit thread_local uint64_t ptkit_cursor = 0;

namespace ptkit::capture::plugin {

__attribute__((tls_model("initial-exec"))) constinit thread_local Thread thread{};

namespace {

constexpr uint64_t kCacheLineBytes = 64;
constexpr uint64_t kPrefetchBytes = 512;

struct alignas(kLongLineBytes) Scratch {
  Line line;
  SlotHeader header;
};
__attribute__((tls_model("initial-exec"))) thread_local Scratch scratch;

uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

SlotHeader* slot_at(uint32_t index) {
  SharedMemoryHeader* const shared = process.shared;
  return reinterpret_cast<SlotHeader*>(reinterpret_cast<char*>(shared) + shared->slots_offset +
                                       index * shared->slot_bytes);
}

bool has_slot() { return thread.slot != nullptr && thread.slot != &scratch.header; }

void use_scratch() {
  thread.slot = &scratch.header;
  ptkit_cursor = 0;
}

// The line after `ahead` others after the one that the thread is filling.
Line* line_ahead(uint64_t ahead) {
  if (!has_slot()) return &scratch.line;
  const SharedMemoryHeader* const shared = process.shared;
  const uint64_t offset = (thread.slot->lines + ahead) * shared->line_bytes & (shared->lines_bytes - 1);
  return reinterpret_cast<Line*>(reinterpret_cast<char*>(thread.slot) + shared->lines_offset + offset);
}

// The line that the thread is filling.
Line* current_line() { return line_ahead(0); }

void clear_line() {
  Line* const line = current_line();
  memset(line, 0xff, process.shared->line_bytes);
  line->tsc = 0;
}

// The recorder's processor has the cache lines of the next lines. Fetches them while this line is filled.
void prefetch_lines() {
  const char* const next =
      reinterpret_cast<const char*>(line_ahead(kPrefetchBytes / process.shared->line_bytes));
  for (uint64_t at = 0; at < process.shared->line_bytes; at += kCacheLineBytes)
    asm volatile("prefetchw %0" : : "m"(next[at]));
}

// Publishes the current line and clears the next one.
void publish_line() {
  ptkit_cursor = 0;
  if (!has_slot()) return;
  SlotHeader* const slot = thread.slot;
  const uint64_t lines = slot->lines + 1;
  __atomic_store_n(&slot->lines, lines, __ATOMIC_RELEASE);
  if (lines >= thread.lines_end) {
    // One line of the ring is the current line.
    const uint64_t capacity = process.shared->lines_bytes / process.shared->line_bytes - 1;
    const bool waited = lines < capacity ||
                        wait_for_recorder(&slot->consumed, lines - capacity + 1, &slot->waiting, &slot->wake);
    if (!waited) return use_scratch();
    thread.lines_end = __atomic_load_n(&slot->consumed, __ATOMIC_ACQUIRE) + capacity;
  }
  if (!recording()) return use_scratch();
  clear_line();
  prefetch_lines();
}

SlotHeader* take_slot() {
  for (uint32_t i = 0; i < process.shared->slots; ++i) {
    SlotHeader* const slot = slot_at(i);
    uint32_t expected = SLOT_FREE;
    if (__atomic_compare_exchange_n(&slot->state, &expected, SLOT_TAKEN, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return slot;
  }
  __atomic_fetch_add(&process.shared->lost_threads, 1, __ATOMIC_RELAXED);
  return nullptr;
}

}  // namespace

void attach_thread() {
  SlotHeader* const slot = attach_process() ? take_slot() : nullptr;
  if (slot == nullptr) return use_scratch();
  thread.slot = slot;
  thread.lines_end = 0;
  slot->tid = static_cast<int32_t>(syscall(SYS_gettid));
  clear_line();
  __atomic_store_n(&slot->state, SLOT_USED, __ATOMIC_RELEASE);
  mark_own_name();
}

void next_line(uint64_t now) {
  if (ptkit_cursor != 0) publish_line();
  Line* const line = current_line();
  line->tsc = now;
  ptkit_cursor = address(line->blocks);
}

void mark(MarkKind kind, uint64_t v0, uint64_t v1, uint64_t v2, uint64_t v3, uint64_t v4, uint64_t v5) {
  if (!has_slot()) return;
  if (ptkit_cursor != 0) publish_line();
  const MarkLine text{__rdtsc(), kMark, kind, {v0, v1, v2, v3, v4, v5}};
  memcpy(current_line(), &text, sizeof text);
  publish_line();
}

void leave_thread() {
  if (!has_slot()) return;
  __atomic_store_n(&thread.slot->state, SLOT_ENDED, __ATOMIC_RELEASE);
  use_scratch();
}

void forget_thread() {
  const uint64_t* const env = thread.env;
  thread = {};
  thread.env = env;
  ptkit_cursor = 0;
}

}  // namespace ptkit::capture::plugin
