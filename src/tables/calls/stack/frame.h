// A frame: one execution of a function, from its call to its end. What a StackMachine gives to a FrameSink.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tables/calls/stack/off_cpu_time.h"
#include "trace/bundle.h"

namespace ptkit::tables::calls {

// How a frame began. Stored in the `how` column of calls: append only.
enum class CallKind : std::uint8_t {
  ROOT = 0,       // the first frame that is known: its call is not in the trace
  CALL = 1,       // by a call instruction
  TAIL = 2,       // by a jump to the entry of another function; it returns for the function that jumped
  PLT = 3,        // called through a stub: a PLT entry or an import thunk
  SIGNAL = 4,     // a signal handler
  INTERRUPT = 5,  // an interrupt or exception, or an instruction such as INT3
  SYSCALL = 6,    // a system call
  INLINED = 7,    // control came to code of a call that is inlined
  THREAD = 8,     // the first function of a thread
  RESUMED = 9,    // continues where control flow was lost or a stack was switched
};

// How a frame ended. Stored in the `end_how` column of calls: append only.
enum class CallEnd : std::uint8_t {
  RETURN = 0,
  UNWIND = 1,   // control went on in a frame below, mostly because of an exception
  LONGJMP = 2,  // control went on behind a call of setjmp() in a frame below
  TAIL = 3,     // by a jump to another function, which returned instead of it
  ABORT = 4,    // its transaction was aborted
  SWITCH = 5,   // reserved for stacks that are switched
  GAP = 6,      // control flow is unknown from there on
  END = 7,      // still open at the end of the trace, or when the process executed another program
};

// Stored in the `flags` column of calls: append only.
enum FrameFlag : std::uint16_t {
  FRAME_EXACT = 1,              // begin, end and position in the stack are certain
  FRAME_PARENT = 2,             // `parent` is known
  FRAME_ENTRY = 4,              // `entry_ip` is known
  FRAME_CALL = 8,               // `call_ip` is known
  FRAME_RETURN = 16,            // `return_ip` is known
  FRAME_CONTINUES = 32,         // `continues` is known
  FRAME_RECURSIVE = 64,         // the function has another frame below
  FRAME_IN_TX = 128,            // entered within a transaction
  FRAME_BEGIN_SEEN = 256,       // the begin, at the function's first instruction, is in the trace
  FRAME_TIME_KNOWN = 512,       // the time of the begin is known
  FRAME_END_TIME_KNOWN = 1024,  // the time of the end is known
  FRAME_UNDECIDED = 2048,       // control may have returned to another frame
  FRAME_IMPORT = 4096,          // of an imported function of which the code is not traced
  FRAME_BEGINS_BEFORE = 8192,   // it began before the window
  FRAME_ENDS_AFTER = 16384,     // it is open at the window's end
};

// A position in a stream: counts of what was before it, and the interval of its time.
struct StreamPosition {
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;
  std::uint64_t stream_instructions =
      0;                     // the other counts are those of a thread, where the position is a frame's
  std::uint64_t offset = 0;  // bytes
  std::uint64_t tsc = 0;     // TSC ticks, the earliest possible time
  std::uint32_t tsc_error = 0;
  bool time_known = false;
};

// Groups of frames beside that of their functions: by entry, by module. See MoreGroups.
inline constexpr std::size_t kMoreGroups = 2;

// What a frame has by another group: see Frame::new_instructions and FRAME_RECURSIVE.
struct GroupShare {
  std::uint64_t new_instructions = 0;
  std::uint64_t new_branches = 0;
  bool is_recursive = false;
};

struct Frame {
  std::uint64_t id = 0;  // numbers frames of a stream in the order in which they become known
  std::uint64_t parent = 0;
  std::uint64_t entry_ip = 0;
  std::uint64_t call_ip = 0;    // of the instruction that entered the function
  std::uint64_t return_ip = 0;  // where the function has to return to
  std::uint64_t import_ip = 0;  // FRAME_IMPORT: of the branch through the import slot
  // The frame that this one continues, where control flow had been lost; of inlined calls, the frame with the
  // code of the same execution before it.
  std::uint64_t continues = 0;
  std::uint64_t instructions = 0;  // of the frame and those above it
  std::uint64_t self_instructions = 0;
  std::uint64_t new_instructions = 0;  // those that no other frame of the function has
  std::uint64_t branches = 0;          // of the frame and those above it
  std::uint64_t new_branches = 0;      // as new_instructions
  StreamPosition begin;
  StreamPosition end;
  OffCpuTime off_cpu;          // in which the thread did not execute the frame, or those above it
  std::uint32_t function = 0;  // number in a FunctionTable
  std::uint32_t group = 0;     // number in FrameGroups
  std::uint32_t cell = 0;      // number in MoreGroups, if these are looked for
  std::uint32_t segment = 0;  // of the stream: frames of one segment are those of one execution without a gap
  std::int32_t depth = 0;     // frames below; those that are found below the first one are negative
  CallKind how = CallKind::ROOT;
  CallEnd end_how = CallEnd::END;
  std::uint16_t flags = 0;
  std::uint8_t inline_level = 0;  // inlined calls that entry_ip is in, up to this one; 0: it is none
  bool is_far = false;            // entered by a far jump or return: the function below it may go on
  bool is_outside = false;        // it ended before the window
  std::array<GroupShare, kMoreGroups> more{};  // by the groups of its cell

  // It has a part of the execution that another frame began.
  [[nodiscard]] bool is_rest() const noexcept {
    return how == CallKind::INLINED && (flags & FRAME_CONTINUES) != 0;
  }
  // Counts as an execution of its function that begins in the trace.
  [[nodiscard]] bool is_call() const noexcept { return !is_rest() && (flags & FRAME_BEGIN_SEEN) != 0; }
  [[nodiscard]] bool has_times() const noexcept {
    return (flags & FRAME_TIME_KNOWN) != 0 && (flags & FRAME_END_TIME_KNOWN) != 0;
  }
  // From begin to end, TSC ticks.
  [[nodiscard]] std::uint64_t least_time() const noexcept {
    return end.tsc - std::min(begin.tsc + begin.tsc_error, end.tsc);
  }
  [[nodiscard]] std::uint64_t most_time() const noexcept {
    return end.tsc + end.tsc_error - std::min(begin.tsc, end.tsc);
  }
  // It has a part outside of the window.
  [[nodiscard]] bool crosses() const noexcept {
    return (flags & (FRAME_BEGINS_BEFORE | FRAME_ENDS_AFTER)) != 0;
  }
  [[nodiscard]] bool is_begin_unseen() const noexcept {
    return !is_rest() && (flags & FRAME_BEGIN_SEEN) == 0;
  }
};

// What fits nothing. Stored in the `kind` column of stack anomalies: append only.
enum class AnomalyKind : std::uint8_t {
  RETURN_ELSEWHERE = 0,   // a return to an address that no open frame returns to
  SKIPPED_FRAMES = 1,     // a return to the caller of a frame below the top
  JUMP_INSIDE = 2,        // an indirect jump into another function, not to its entry
  SIGNAL_RETURN = 3,      // a signal handler returned to another address than the interrupted one
  INTERRUPT_RETURN = 4,   // a return from the kernel that no open frame waits for
  TOO_DEEP = 5,           // too many open frames: they end as at a gap
  ENTERED_ELSEWHERE = 6,  // packets were enabled again at an address that fits no open frame
  UNDECIDED = 7,          // which of several frames, or which stack, control went to is not certain
};

struct Anomaly {
  StreamPosition position;
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  std::uint64_t expected_ip = 0;  // return address of the frame at the top
  std::uint64_t frame = 0;        // the frame at the top
  std::int32_t depth = 0;         // of that frame
  AnomalyKind kind = AnomalyKind::RETURN_ELSEWHERE;
  bool from_known = false;
  bool frame_known = false;
  bool expected_known = false;
  bool no_call_before = false;  // no call stands before to_ip, so it is no return address
};

// The thread and address space of frames.
struct Owner {
  std::int64_t cpu = trace::kNoId;
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  trace::SpaceId space = trace::kAnySpace;

  bool operator==(const Owner&) const = default;
};

// What a StackMachine has: numbers of frames so far, of those that are open, and of their groups.
struct FrameCounts {
  std::uint64_t ids = 0;
  std::uint64_t open = 0;
  std::uint64_t groups = 0;
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // Frames come as they end.
  virtual void on_frame(const Frame& frame, const Owner& owner) = 0;
  virtual void on_anomaly(const Anomaly& anomaly, const Owner& owner) = 0;
  // The window begins. Of the frames with numbers below `frames`, these are open, in ascending order; the
  // others ended before it.
  virtual void on_window(std::span<const std::uint64_t> open, std::uint64_t frames) {
    static_cast<void>(open);
    static_cast<void>(frames);
  }
  // A frame that is not shown: what is above it is above its parent.
  virtual void on_hidden(const Frame&) {}
  // Memory of what it keeps, and what it is going to need besides for the frames that are open.
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept { return 0; }
  [[nodiscard]] virtual std::uint64_t later_bytes(const FrameCounts&) const noexcept { return 0; }
};

}  // namespace ptkit::tables::calls
