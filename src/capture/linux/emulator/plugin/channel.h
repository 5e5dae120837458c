// The channel between the plugin in an emulator process and the recorder: one shared memory file per process,
// and the messages that pass it. Plain data only: the plugin has no C++ library.
//
// A process connects to the recorder's socket, sends a Hello and receives a Welcome with the memory file
// (SCM_RIGHTS). Then it closes the socket, as the guest may close any descriptor. The file is
//
//   SharedMemoryHeader | log (bytes, a ring) | slots: SlotHeader + lines (a ring), one for each thread
//
// Each ring has one producer (plugin) and one consumer (recorder), which never write the same field. Counters
// only grow; an offset in a ring is the counter modulo the ring's size:
//
//   producer                                        consumer
//   waits until written + n - consumed <= size      waits until written != consumed
//   writes n bytes at written % size                copies them from consumed % size
//   written += n (release)                          consumed += n, then FUTEX_WAKE if `waiting`
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace ptkit::capture::plugin {

constexpr uint32_t kChannelMagic = 0x6b74'7071;
constexpr uint32_t kChannelVersion = 5;
constexpr size_t kPageBytes = 4096;

// ---- lines: the blocks that a thread executed

// A line is SharedMemoryHeader::line_bytes bytes, at a multiple of its size: TSC when it was begun, then
// numbers of blocks in the order in which they were begun. Long lines have 62 numbers. Short lines have 14
// numbers for CYC packets, or 3 TimedBlocks (SharedMemoryHeader::block_times). A line may be partly filled:
// unused entries hold kNoBlock. A mark takes a line.
constexpr size_t kLongLineBytes = 256;
constexpr size_t kShortLineBytes = 64;
constexpr size_t line_blocks(size_t line_bytes) { return (line_bytes - sizeof(uint64_t)) / sizeof(uint32_t); }
constexpr size_t kLineTimedBlocks = 3;
constexpr uint32_t kNoBlock = 0xffff'ffffU;  // an unused entry, or a block after the end of recording
constexpr uint32_t kMark = 0xffff'fffeU;     // in entry 0: the line is a MarkLine

struct TimedBlock {
  uint32_t block;
  uint32_t tsc;  // when the block began: low 32 bits. A line spans less than 2^32 ticks
  uint64_t sp;   // RSP when the block began
};

// A short line has the first kShortLineBytes bytes.
struct Line {
  uint64_t tsc;
  union {
    uint32_t blocks[line_blocks(kLongLineBytes)];
    TimedBlock timed[kLineTimedBlocks];
  };
};
static_assert(sizeof(Line) == kLongLineBytes);

// An event between two blocks, with its exact time.
enum class MarkKind : uint32_t {
  // Before a system call: number, arguments 0 to 4. Follows the block that ends with SYSCALL.
  SYSCALL = 1,
  // After a system call: number, result. Calls that do not return have none.
  SYSCALL_END = 2,
  // The emulator checks for signals: IP of the next instruction, which was not executed, and RSP.
  INTERRUPT = 3,
  // After INTERRUPT: IP of the next instruction, RSP, RDI (the number of a delivered signal), and 1 if a
  // signal is
  // delivered (RIP or RSP changed).
  RESUME = 4,
  // This thread has translated a block: its number, IP. Its execution may follow.
  TRANSLATED = 5,
  // Before execve() replaces the process. The stream ends without RESUME, or EXEC_FAILED follows.
  EXEC = 6,
  EXEC_FAILED = 7,   // errno
  THREAD_EXIT = 8,   // exit(): status
  PROCESS_EXIT = 9,  // exit_group(): status
  // A thread is named: tid, its name as in prctl(PR_GET_NAME) (16 bytes).
  NAME = 10,
};

struct MarkLine {
  uint64_t tsc;
  uint32_t mark;  // kMark
  MarkKind kind;
  uint64_t values[6];
};
static_assert(sizeof(MarkLine) == kShortLineBytes);

// One thread of the guest.
struct alignas(64) SlotHeader {
  // Line 0, written by the thread.
  // Number of complete lines; store-release. The thread fills the line after them: its TSC is 0 until its
  // first block, and its unused entries hold kNoBlock.
  uint64_t lines;
  int32_t tid;       // host thread id
  uint32_t state;    // SlotState
  uint32_t waiting;  // the thread waits for free lines
  uint32_t unused0[11];
  // Line 1, written by the recorder.
  uint64_t consumed;  // number of consumed lines; store-release
  uint32_t wake;      // futex: the recorder increments it after `consumed` if `waiting`
  uint32_t unused2[13];
};
static_assert(sizeof(SlotHeader) == 128);

enum SlotState : uint32_t {
  SLOT_FREE = 0,   // set by the recorder: all lines were read. A new thread may take the slot
  SLOT_USED = 1,   // set by the plugin
  SLOT_ENDED = 2,  // set by the plugin: the thread has ended and writes no more lines
  SLOT_TAKEN = 3,  // set by the plugin during setup: no lines yet
};

// ---- log: the blocks that the process translated

enum class LogKind : uint16_t {
  BLOCK = 1,  // LogBlock. Blocks are numbered in order, from SharedMemoryHeader::first_block on
  MAP = 2,    // LogMap: an executable mapping, or its ELF header. Comes before the blocks in it
  NOTE = 3,   // LogNote: a warning for the user
};

// Records are at multiples of 8, and never wrap: a record of kind 0 fills the rest of the ring.
struct LogRecord {
  uint32_t bytes;  // size of the record with this header, a multiple of 8
  LogKind kind;
  uint16_t count;  // BLOCK: instructions
};
struct LogBlock {
  LogRecord record;
  uint64_t pc;
  uint64_t tsc;   // time of translation
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
enum class NoteKind : uint32_t {
  PROGRAM_NATIVE = 1,  // exec() of a program that the emulator cannot run
  EXEC_FAILED = 2,     // exec() of the emulator failed, with `error`
};
struct LogNote {
  LogRecord record;
  uint32_t text_bytes;  // the program's path follows, zero padded
  NoteKind kind;
  int32_t error;  // errno
  uint32_t unused;
};
constexpr size_t kMaxLogRecord = size_t{64} << 10;

// ---- the file

struct alignas(64) SharedMemoryHeader {
  // Set by the recorder before the file is handed over.
  uint32_t magic;
  uint32_t version;
  uint64_t log_offset, log_bytes;      // the log ring
  uint64_t slots_offset, slot_bytes;   // the first slot, the distance between slots; multiples of kPageBytes
  uint64_t lines_offset, lines_bytes;  // inside a slot; lines_bytes is a power of two
  uint64_t line_bytes;                 // kLongLineBytes or kShortLineBytes
  uint32_t slots;
  uint32_t block_times;  // 1: each block has its time and RSP (TimedBlock)
  int32_t recorder_pid;
  uint32_t unused0;
  // Written by the recorder.
  alignas(64) uint64_t heartbeat;  // incremented at least every second
  uint32_t stop;                   // 1: recording has ended; the program continues
  uint32_t log_wake;               // futex: incremented after log_consumed if log_waiting
  uint64_t log_consumed;           // bytes
  // Written by the plugin.
  alignas(64) uint64_t log_written;  // bytes; store-release
  uint64_t first_block;              // number of the first block in this log (children: the inherited blocks)
  uint32_t log_waiting;              // the process waits for space in the log
  uint32_t lost_threads;             // threads that found no free slot: not recorded
  uint32_t lost_children;            // children that could not connect to the recorder
  uint32_t attached;                 // 1: the plugin runs
};

// ---- messages

struct Hello {
  uint32_t magic;
  uint32_t version;
  int32_t pid;
  int32_t parent;        // fork(): the parent. 0: a new image (first process, exec())
  uint64_t first_block;  // number of inherited blocks
  uint64_t tsc;
  uint64_t parent_memory;  // Welcome::memory of the parent; 0: none
  char program[4096];      // the program's path as given
};
struct Welcome {
  uint32_t magic;
  uint32_t accepted;  // 0: the recorder ends; the process continues unrecorded
  uint64_t memory;    // number of this process's shared memory
  uint64_t bytes;     // size of the memory file
};

}  // namespace ptkit::capture::plugin
