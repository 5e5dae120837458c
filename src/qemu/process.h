// The process that traces: its memory file, its log, and what the plugin was told.
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "qemu/channel.h"

namespace ptkit::qemu {

struct Settings {
  char socket[PATH_MAX];   // of the recorder
  char plugin[PATH_MAX];   // this shared object
  char qemu[PATH_MAX];     // the emulator
  char program[PATH_MAX];  // the file that it runs; empty: not known
};

struct Process {
  Settings settings;
  ArenaHeader* arena;  // null: nothing is recorded
  size_t arena_bytes;
  uint64_t arena_number;
  bool forked;          // a child that has not said hello
  bool refused;         // recording ended, or the recorder cannot be reached: the program runs on
  uint32_t next_block;  // number of the next block that is translated
  int32_t parent;       // `forked`: the parent
  int32_t pid;          // set at attach
};

// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): a declaration
extern constinit Process process;

// Says hello to the recorder if this process has not yet. False: nothing is recorded.
bool attach_process();
// Called where the process has just been forked from a recorded one.
void forget_process();

[[nodiscard]] inline bool recording() {
  return process.arena != nullptr && __atomic_load_n(&process.arena->stop, __ATOMIC_RELAXED) == 0;
}

// Waits until *counter >= wanted; false if the recorder is gone. `waiting` and `wake` as in channel.h.
bool wait_for_recorder(const uint64_t* counter, uint64_t wanted, uint32_t* waiting, uint32_t* wake);

// ---- the log; one thread at a time (QEMU translates under a lock)

// Room for a record of `bytes` bytes (header included), zeroed; null if nothing is recorded any more.
// Complete it with publish_record().
[[nodiscard]] void* begin_record(LogKind kind, size_t bytes);
void publish_record(const void* record);
void note(const char* text);

}  // namespace ptkit::qemu
