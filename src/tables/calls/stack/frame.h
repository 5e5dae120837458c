// A frame: one execution of a function, from its call to its end. A StackMachine gives frames to a FrameSink.
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
#define PT_CALL_KIND(name, value, text) name = value,
#include "tables/calls/stack/kinds.def"
};

// How a frame ended. Stored in the `end_how` column of calls: append only.
enum class CallEnd : std::uint8_t {
#define PT_CALL_END(name, value, text) name = value,
#include "tables/calls/stack/kinds.def"
};

// Stored in the `flags` column of calls: append only.
enum FrameFlag : std::uint16_t {
#define PT_CALL_FLAG(name, value, frame) FRAME_##frame = value,
#include "tables/columns/kinds.def"
};

// A position in a stream: counts of instructions and branches before it, and the interval of its time.
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

// Shares of a frame by another group: see Frame::new_instructions and FRAME_RECURSIVE.
struct GroupShare {
  std::uint64_t new_instructions = 0;
  std::uint64_t new_branches = 0;
  bool is_recursive = false;
};

struct OpenFrame;  // tables/calls/stack/thread_stack.h

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
  // The open frames below, outermost first, while a sink has the frame. Null: none, or they are not given.
  const OpenFrame* callers = nullptr;
  std::size_t callers_size = 0;

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

// Branches that no rule fits. Stored in the `kind` column of stack anomalies: append only.
enum class AnomalyKind : std::uint8_t {
#define PT_STACK_ANOMALY(name, value, text) name = value,
#include "tables/calls/stack/kinds.def"
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

// Counts of a StackMachine: frames so far, of those that are open, and of their groups.
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
  // A frame that is not shown: frames above it are above its parent.
  virtual void on_hidden(const Frame&) {}
  // Of a thread: a time in which it did not execute traced code. It goes on with another stack.
  virtual void on_off_cpu(const OffCpuInterval&, const Owner&) {}
  virtual void on_other_stack(const Owner&) {}
  // Memory in use, and memory that the open frames are going to need.
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept { return 0; }
  [[nodiscard]] virtual std::uint64_t later_bytes(const FrameCounts&) const noexcept { return 0; }
};

// Gives frames to two sinks, such as a table and sums.
class TwoSinks final : public FrameSink {
 public:
  // Both must outlive this.
  TwoSinks(FrameSink& first, FrameSink& second) : first_(first), second_(second) {}

  void on_frame(const Frame& frame, const Owner& owner) override {
    first_.on_frame(frame, owner);
    second_.on_frame(frame, owner);
  }
  void on_anomaly(const Anomaly& anomaly, const Owner& owner) override {
    first_.on_anomaly(anomaly, owner);
    second_.on_anomaly(anomaly, owner);
  }
  void on_window(std::span<const std::uint64_t> open, std::uint64_t frames) override {
    first_.on_window(open, frames);
    second_.on_window(open, frames);
  }
  void on_hidden(const Frame& frame) override {
    first_.on_hidden(frame);
    second_.on_hidden(frame);
  }
  void on_off_cpu(const OffCpuInterval& interval, const Owner& owner) override {
    first_.on_off_cpu(interval, owner);
    second_.on_off_cpu(interval, owner);
  }
  void on_other_stack(const Owner& owner) override {
    first_.on_other_stack(owner);
    second_.on_other_stack(owner);
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return first_.bytes() + second_.bytes(); }
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override {
    return first_.later_bytes(counts) + second_.later_bytes(counts);
  }

 private:
  FrameSink& first_;
  FrameSink& second_;
};

}  // namespace ptkit::tables::calls
