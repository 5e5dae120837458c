// The guest thread that runs: where its blocks go. Everything here is called by that thread.
#pragma once

#include <stdint.h>

#include "qemu/channel.h"

namespace ptkit::qemu {

struct Thread {
  // Where numbers of blocks are written. Null: not asked for yet. A thread that is not recorded has one of
  // its own that nobody reads.
  SlotHeader* slot;
  const uint64_t* env;  // CPUX86State: 16 general registers, RIP; null: not known
  bool in_syscall;      // between SYSCALL and SYSCALL_END
  bool interrupted;     // between INTERRUPT and RESUME
  uint64_t interrupt_ip;
  uint64_t interrupt_sp;
};

// The emulator has the plugin from its start (it is preloaded), so there is room for static TLS.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local Thread thread;

// The line that is being filled is full. Returns the place to write to next, which is in `thread.slot`.
[[nodiscard]] uint64_t end_line(SlotHeader* slot);
// Begins a new line though this one is not full.
void pad_line();
// Writes a mark behind what there is.
void mark(MarkKind kind, uint64_t v0 = 0, uint64_t v1 = 0, uint64_t v2 = 0, uint64_t v3 = 0, uint64_t v4 = 0,
          uint64_t v5 = 0);
// Sets `thread.slot`.
void attach_thread();
// The thread ends.
void leave_thread();
// This process is a fork's child: only this thread is left, and its slot is the parent's.
void forget_thread();

}  // namespace ptkit::qemu
