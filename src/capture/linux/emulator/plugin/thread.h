// The calling guest thread: its slot, its current line and its name. Only that thread calls these functions.
#pragma once

#include <stdint.h>

#include "capture/linux/emulator/plugin/channel.h"

// The address for the next block's number. A multiple of the line's size: the line is full. 0: no line was
// begun. The fast path uses only this variable (blocks.cpp). The plugin is preloaded, so static TLS is
// available.
extern "C" {
// NOLINTBEGIN(bugprone-dynamic-static-initializers): a declaration
extern __attribute__((tls_model("initial-exec"),
                      visibility("hidden"))) constinit thread_local uint64_t ptkit_cursor;
// NOLINTEND(bugprone-dynamic-static-initializers)

// QEMU's generated code calls one of these for every block (blocks.cpp), by the size of the lines:
// kLongLineBytes, kShortLineBytes, and kShortLineBytes with SharedMemoryHeader::block_times.
__attribute__((visibility("hidden"))) void ptkit_block(unsigned vcpu, void* number);
__attribute__((visibility("hidden"))) void ptkit_short_line_block(unsigned vcpu, void* number);
__attribute__((visibility("hidden"))) void ptkit_timed_block(unsigned vcpu, void* number);
}

namespace ptkit::capture::plugin {

// Words of CPUX86State.
constexpr int kRsp = 4;
constexpr int kRdi = 7;
constexpr int kRip = 16;

struct Thread {
  // Null until attach_thread(). A thread that is not recorded has a scratch slot that the recorder does not
  // read.
  SlotHeader* slot;
  uint64_t lines_end;   // number of lines that can be complete before `consumed` must be loaded again
  const uint64_t* env;  // CPUX86State: 16 general registers, RIP
  bool in_syscall;      // between SYSCALL and SYSCALL_END
  bool interrupted;     // between INTERRUPT and RESUME
  uint64_t interrupt_ip;
  uint64_t interrupt_sp;
  uint64_t call[2];   // arguments 0 and 1 of the current system call
  int32_t name_file;  // descriptor of an open /proc/PID/task/TID/comm, if named_tid is not 0
  int32_t named_tid;  // TID of that file; 0: no such file is open
};

// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): a declaration
extern __attribute__((tls_model("initial-exec"))) constinit thread_local Thread thread;

// Sets `thread.slot`.
void attach_thread();
// Completes the current line and begins a line for a block that begins at `now`.
void next_line(uint64_t now);
// Completes the current line and writes a mark.
void mark(MarkKind kind, uint64_t v0 = 0, uint64_t v1 = 0, uint64_t v2 = 0, uint64_t v3 = 0, uint64_t v4 = 0,
          uint64_t v5 = 0);
// The thread ends.
void leave_thread();
// Called in the child after fork(): only this thread exists, and its slot is the parent's.
void forget_thread();

// ---- names of threads (names.cpp): pthread_setname_np(), prctl(). The emulator passes the system calls to
// the kernel, so the kernel has the guest's names

// Writes a NAME mark for the calling thread.
void mark_own_name();
// After a system call of the calling thread: writes a NAME mark if the call named a thread.
void follow_names(int64_t number, int64_t result);

}  // namespace ptkit::capture::plugin
