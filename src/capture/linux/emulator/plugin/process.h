// The emulator process: its shared memory, its log, the plugin's settings, and execve().
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

// ---- the mapped files of the guest's code (maps.cpp)

// Logs the file mapping at `pc` if it was not logged. Called during translation.
void log_mapping(uint64_t pc);
// Mappings in [begin, end) may have changed: they are logged again.
void invalidate_mappings(uint64_t begin, uint64_t end);

// ---- execve() of the guest (guest_exec.cpp): the emulator itself would execute the new program natively

// If the emulator can run the program, replaces this process by an emulator that runs it, and does not
// return. Otherwise returns, and the emulator continues the system call: it fails with the guest's error, or
// executes a program of another kind natively (with a note in the log).
void exec_in_emulator(const char* path, char* const* argv, char* const* envp);
// execveat(): `path` is relative to `folder`. If `path` is empty, `folder` is the program.
void exec_in_emulator(int folder, const char* path, int flags, char* const* argv, char* const* envp);

}  // namespace ptkit::capture::plugin
