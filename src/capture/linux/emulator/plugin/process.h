// The emulator process: its shared memory, its log, and the plugin's settings.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/linux/emulator/plugin/channel.h"

namespace ptkit::capture::plugin {

struct Settings {
  char socket[PATH_MAX];   // the recorder's socket
  char plugin[PATH_MAX];   // this shared object
  char qemu[PATH_MAX];     // the emulator
  char program[PATH_MAX];  // the guest's program; empty: not known
};

struct Process {
  Settings settings;
  SharedMemoryHeader* shared;  // null: not recording
  size_t shared_bytes;
  uint64_t memory_number;
  bool forked;          // a child that has not sent its Hello
  bool refused;         // the recording has ended, or the recorder cannot be reached: the program continues
  uint32_t next_block;  // number of the next translated block
  int32_t parent;       // `forked`: the parent
  int32_t pid;          // set at attach
};

// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): a declaration
extern constinit Process process;

// Connects to the recorder if this process has not yet. Returns false if the process is not recorded.
bool attach_process();
// Called in the child after fork() of a recorded process.
void forget_process();

[[nodiscard]] inline bool recording() {
  return process.shared != nullptr && __atomic_load_n(&process.shared->stop, __ATOMIC_RELAXED) == 0;
}

// Waits until *counter >= wanted. Returns false if the recorder is gone. See channel.h for `waiting` and
// `wake`.
bool wait_for_recorder(const uint64_t* counter, uint64_t wanted, uint32_t* waiting, uint32_t* wake);

// ---- the log; one thread at a time (QEMU translates under a lock)

// Reserves a zeroed record of `bytes` bytes, header included. Returns null if the recording has ended.
// publish_record() completes the record.
[[nodiscard]] void* begin_record(LogKind kind, size_t bytes);
void publish_record(const void* record);
void note(NoteKind kind, const char* path, int error = 0);

}  // namespace ptkit::capture::plugin
