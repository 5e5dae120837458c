// What the plugin inside an emulator process and the recorder share: one memory file per process, and the
// messages by which it is handed over. Plain data only: the plugin has no C++ library.
//
// A process connects to the recorder's socket, sends a Hello and gets a Welcome with the memory file (as
// SCM_RIGHTS); then it closes the socket, for a guest may close any descriptor. The file is
//
//   ArenaHeader | log (bytes, a ring) | slots: SlotHeader + lines (a ring), one for each thread
//
// Producer (plugin) and consumer (recorder) never write the same field. Counters only grow; a place in a ring
// is the counter modulo its size.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace ptkit::qemu {

constexpr uint32_t kChannelMagic = 0x6b74'7071;
constexpr uint32_t kChannelVersion = 2;
constexpr size_t kPageBytes = 4096;

// ---- lines: what a thread executed

// A line is 64 bytes, at a multiple of 64: TSC when it was begun, then numbers of blocks in the order in
// which they were begun. With per-block times (ArenaHeader::block_times) 7 pairs, otherwise 14 numbers. The
// last line may be partly filled: unused places hold kNoBlock.
constexpr size_t kLineBytes = 64;
constexpr size_t kLineBlocks = 14;
constexpr size_t kLineTimedBlocks = 7;
constexpr uint32_t kNoBlock = 0xffff'ffffU;  // an unused place, or a block that came after the end
constexpr uint32_t kMark = 0xffff'fffeU;     // at place 0: the line is a MarkLine

struct TimedBlock {
  uint32_t block;
  uint32_t
      tsc;  // low 32 bits, when the block began; less than 2^32 ticks after the line's TSC, else a new line
};

struct Line {
  uint64_t tsc;
  union {
    uint32_t blocks[kLineBlocks];
    TimedBlock timed[kLineTimedBlocks];
  };
};
static_assert(sizeof(Line) == kLineBytes);

// Something else than a block, at its place among the blocks, with its exact time.
enum class MarkKind : uint32_t {
  SYSCALL = 1,  // about to enter: number, arguments 0 to 4. Follows the block that ends with the instruction
  SYSCALL_END = 2,  // about to leave: number, result. Not for calls that do not return here
  INTERRUPT =
      3,  // the emulator looks for signals: the IP where the guest is; it has not executed that instruction
  RESUME = 4,      // after INTERRUPT: the IP where the guest goes on, RSP, RDI (the signal's number if one is
                   // delivered), whether a signal is delivered (RIP or RSP changed: 1)
  TRANSLATED = 5,  // this thread has translated a block: its number, IP. Executing it comes later, if at all
  EXEC =
      6,  // execve is about to replace the process. A RESUME-less end of the stream follows, or EXEC_FAILED
  EXEC_FAILED = 7,   // errno
  THREAD_EXIT = 8,   // by exit()
  PROCESS_EXIT = 9,  // by exit_group(): status
  NAME = 10,  // a thread is called so from here on: tid, its name as prctl(PR_GET_NAME) has it (16 bytes)
};

struct MarkLine {
  uint64_t tsc;
  uint32_t mark;  // kMark
  MarkKind kind;
  uint64_t values[6];
};
static_assert(sizeof(MarkLine) == kLineBytes);

// One thread of the guest.
struct alignas(64) SlotHeader {
  // Line 0, written by the thread.
  uint64_t lines;  // complete lines; store-release. The line behind them is being filled: TSC 0 until it has
                   // a block, and kNoBlock where none was written yet
  int32_t tid;     // host thread id
  uint32_t state;  // SlotState
  uint32_t waiting;  // the thread waits for room
  uint32_t unused0[11];
  // Line 1, written by the recorder.
  uint64_t consumed;  // lines; store-release
  uint32_t wake;      // futex: the recorder bumps it after `consumed` if `waiting`
  uint32_t unused2[13];
};
static_assert(sizeof(SlotHeader) == 128);

enum SlotState : uint32_t {
  SLOT_FREE = 0,   // by the recorder: everything was read. The plugin may take it for a new thread
  SLOT_USED = 1,   // by the plugin
  SLOT_ENDED = 2,  // by the plugin: the thread has ended, nothing follows
  SLOT_TAKEN = 3,  // by the plugin: is being set up, nothing to read yet
};

// ---- log: what the process translated

enum class LogKind : uint16_t {
  BLOCK = 1,  // LogBlock. Blocks are numbered in order, from ArenaHeader::first_block on
  MAP = 2,    // LogMap: an executable mapping, before any block in it
  NOTE = 3,   // LogNote: something that the user should know
};

// Records are at multiples of 8, and never wrap: a record of kind 0 fills the rest of the ring.
struct LogRecord {
  uint32_t bytes;  // of the record with this header, a multiple of 8
  LogKind kind;
  uint16_t count;  // BLOCK: instructions
};
struct LogBlock {
  LogRecord record;
  uint64_t pc;
  uint64_t tsc;   // when it was translated
  uint32_t size;  // bytes of code that follow, zero padded
  uint32_t unused;
};
struct LogMap {
  LogRecord record;
  uint64_t begin;
  uint64_t end;
  uint64_t offset;
  uint64_t tsc;
  uint32_t writable;
  uint32_t path_bytes;  // the path follows, zero padded; 0: anonymous
};
struct LogNote {
  LogRecord record;
  uint32_t text_bytes;  // follows, zero padded
  uint32_t unused;
};
constexpr size_t kMaxLogRecord = size_t{64} << 10;

// ---- the file

struct alignas(64) ArenaHeader {
  // Set by the recorder before the file is handed over.
  uint32_t magic;
  uint32_t version;
  uint64_t log_offset, log_bytes;  // of the log ring
  uint64_t slots_offset,
      slot_bytes;  // the first slot, and the distance between slots; multiples of kPageBytes
  uint64_t lines_offset, lines_bytes;  // inside of a slot; lines_bytes is a power of two
  uint32_t slots;
  uint32_t block_times;  // every block has its time: TimedBlock
  int32_t recorder_pid;
  uint32_t unused0;
  alignas(64) uint64_t heartbeat;    // by the recorder: grows at least every second
  uint32_t stop;                     // record no more (the program runs on)
  uint32_t log_wake;                 // futex: bumped after log_consumed if log_waiting
  uint64_t log_consumed;             // bytes
  alignas(64) uint64_t log_written;  // by the plugin, store-release: bytes
  uint64_t first_block;              // number of the first block in this log (children: what they inherited)
  uint32_t log_waiting;
  uint32_t lost_threads;   // no slot was free: threads that are not recorded
  uint32_t lost_children;  // children that could not reach the recorder
  uint32_t attached;       // the plugin runs
};

// ---- messages

struct Hello {
  uint32_t magic;
  uint32_t version;
  int32_t pid;
  int32_t parent;  // of a fork: the process whose blocks this one begins with. 0: a new image (root, exec)
  uint64_t first_block;  // blocks that it begins with
  uint64_t tsc;
  uint64_t parent_arena;  // Welcome::arena of the parent; 0: none
  char program[4096];     // the program's path as given
};
struct Welcome {
  uint32_t magic;
  uint32_t accepted;  // 0: the recorder is about to end; run on untraced
  uint64_t arena;     // number of this process's arena
  uint64_t bytes;     // size of the memory file
};

}  // namespace ptkit::qemu
