// The guest thread that runs: where its blocks go. Everything here is called by that thread.
#pragma once

#include <stdint.h>

#include "qemu/channel.h"

// Where the next block's number is written. A multiple of 64: the line is full; 0: none was begun. Generated
// code's calls look at nothing else (blocks.cpp). The emulator has the plugin from its start (it is
// preloaded), so there is room for static TLS.
extern "C" {
// NOLINTBEGIN(bugprone-dynamic-static-initializers): a declaration
extern __attribute__((tls_model("initial-exec"),
                      visibility("hidden"))) constinit thread_local uint64_t ptkit_cursor;
// NOLINTEND(bugprone-dynamic-static-initializers)
}

namespace ptkit::qemu {

struct Thread {
  SlotHeader*
      slot;  // null: not asked for yet. A thread that is not recorded has one of its own that nobody reads
  uint64_t lines_end;   // so many lines can be completed before `consumed` has to be looked at again
  const uint64_t* env;  // CPUX86State: 16 general registers, RIP
  bool in_syscall;      // between SYSCALL and SYSCALL_END
  bool interrupted;     // between INTERRUPT and RESUME
  uint64_t interrupt_ip;
  uint64_t interrupt_sp;
  uint64_t call[2];   // arguments 0 and 1 of the system call that the thread is in
  int32_t name_file;  // an open /proc/PID/task/TID/comm, if named_tid is not 0
  int32_t named_tid;  // whose name it has
};

// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): a declaration
extern __attribute__((tls_model("initial-exec"))) constinit thread_local Thread thread;

// Sets `thread.slot`.
void attach_thread();
// Begins a line for a block that begins at `now`, after completing the one that is there, full or not.
void next_line(uint64_t now);
// Writes a mark behind what there is.
void mark(MarkKind kind, uint64_t v0 = 0, uint64_t v1 = 0, uint64_t v2 = 0, uint64_t v3 = 0, uint64_t v4 = 0,
          uint64_t v5 = 0);
// The thread ends.
void leave_thread();
// This process is a fork's child: only this thread is left, and its slot is the parent's.
void forget_thread();

}  // namespace ptkit::qemu
