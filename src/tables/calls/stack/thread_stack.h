// The open frames of one thread, innermost last. Gives frames to a FrameSink as they end.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tables/calls/code/code_facts.h"
#include "tables/calls/code/inline_facts.h"
#include "tables/calls/stack/frame.h"
#include "tables/calls/stack/frame_groups.h"
#include "tables/calls/stack/off_cpu_time.h"
#include "tables/calls/stack/state_fields.h"

namespace ptkit::tables::calls {

// Bits of an open frame beside those of FrameFlag.
enum OpenFlag : std::uint16_t {
  OPEN_RESOLVER = 2,   // the dynamic linker looks up the function
  OPEN_INNER = 4,      // called within its own function, as retpolines do
  OPEN_SETJMP = 8,     // setjmp(): where it returns to can be reached again
  OPEN_RESTORER = 16,  // a signal handler that has returned
  OPEN_KERNEL = 32,    // entered from user code
  OPEN_SWITCH = 64,    // continues on another stack
  OPEN_LEAVE = 128,    // continues on another stack, and leaves this one for good
  OPEN_MCALL = 256,    // calls a function on another stack
  // Of the kernel's functions.
  OPEN_TASK_SWITCH = 512,    // returns on another thread's stack
  OPEN_SCHEDULER = 1024,     // calls such a function
  OPEN_TASK_END = 2048,      // the thread does not come back from it
  OPEN_RSB_STUFFING = 4096,  // a call that only fills the return stack buffer
  // Of user code.
  OPEN_FAR = 1,            // entered by a far transfer, which may go back after it
  OPEN_FIRST = 8192,       // the first code of a thread, from its first instruction on
  OPEN_START = 1U << 14U,  // a program begins there: it does not return
};

// Of the frames of a group that have ended above an open frame.
struct KnownShare {
  std::uint64_t instructions = 0;
  std::uint64_t branches = 0;
  bool is_recursive = false;  // the open frame is
};

struct OpenFrame {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
  std::uint64_t entry_ip = 0;
  std::uint64_t call_ip = 0;
  std::uint64_t return_ip = 0;
  std::uint64_t import_ip = 0;
  std::uint64_t restart_ip = 0;  // signals within a system call: where it may be repeated
  std::uint64_t continues = 0;
  std::uint64_t inner_instructions = 0;  // of the frames above that have ended
  std::uint64_t known_instructions = 0;  // of those of the same function
  std::uint64_t known_branches = 0;
  std::uint64_t outside_instructions = 0;  // of inner_instructions: before the window
  StreamPosition begin;                    // with counts of the thread
  std::uint32_t function = kUnknownFunction;
  std::uint32_t cell = 0;
  trace::SpaceId space = trace::kAnySpace;  // in which it was entered
  std::int32_t depth = 0;
  std::uint32_t tails = 0;    // tail frames below that share the return address
  std::uint32_t off_cpu = 0;  // number in an OffCpuClock
  CallKind how = CallKind::ROOT;
  std::uint16_t flags = 0;  // FrameFlag
  std::uint16_t open = 0;   // OpenFlag
  std::uint8_t inline_level = 0;
  std::array<KnownShare, kMoreGroups> more{};

  [[nodiscard]] bool returns_to(std::uint64_t ip) const noexcept {
    return return_ip == ip && (flags & FRAME_RETURN) != 0;
  }
  // Control may have returned to another frame.
  void doubt() noexcept { flags = static_cast<std::uint16_t>((flags & ~FRAME_EXACT) | FRAME_UNDECIDED); }
};

// A call or a jump that has come to stubs, which lead to a function: that one's frame begins behind them. The
// top frame has the instructions of the stubs.
struct Stub {
  OpenFrame frame;             // of the function; its entry is that of the last stub
  std::uint64_t inner_ip = 0;  // within a retpoline's call, which would return there; 0: it is not
  std::size_t size = 0;        // frames below
  std::uint8_t step_flags = 0;
  bool is_jump = false;    // the top frame jumps to the function
  bool is_own = false;     // a retpoline of the top frame's own function
  bool is_linked = false;  // one of the stubs is none of a retpoline: a PLT entry or an import thunk
};

// Numbers of frames and of segments, which the threads of a stream share.
struct FrameIds {
  std::uint64_t next = 0;
  std::uint64_t cancelled = UINT64_MAX;  // the lowest one since cancelled() of the machine
  std::uint32_t segment = 0;             // the last one
  // Of the window of frames.
  std::uint64_t first_inside = 0;  // lower ones were given before it
  bool is_before = false;          // it has not begun
  bool is_ending = false;          // frames that end now go on behind it
  bool gives_callers = false;      // frames have those below: see Frame::callers
};

class ThreadStack : private OffCpuListener {
 public:
  // `groups`: by which recursion is looked for, too; null: by function only.
  ThreadStack(FrameIds& ids, MoreGroups* groups, FrameSink& sink, const Owner& owner)
      : ids_(ids), groups_(groups), sink_(sink), owner_(owner), off_cpu_(this) {}
  ThreadStack(const ThreadStack&) = delete;
  ThreadStack& operator=(const ThreadStack&) = delete;

  [[nodiscard]] bool empty() const noexcept { return frames_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }
  [[nodiscard]] OpenFrame& top() noexcept { return frames_.back(); }
  [[nodiscard]] const OpenFrame& top() const noexcept { return frames_.back(); }
  // The frame that the functions at the top return for: the first of those that jumped to each other.
  [[nodiscard]] const OpenFrame& chain() const noexcept {
    return frames_[frames_.size() - 1 - frames_.back().tails];
  }
  // The top returns for a signal handler, or is one.
  [[nodiscard]] bool in_handler() const noexcept { return chain().how == CallKind::SIGNAL; }
  [[nodiscard]] OpenFrame& at(std::size_t index) noexcept { return frames_[index]; }
  [[nodiscard]] const OpenFrame& at(std::size_t index) const noexcept { return frames_[index]; }
  [[nodiscard]] const Owner& owner() const noexcept { return owner_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  void set_owner(const Owner& owner) noexcept { owner_ = owner; }
  [[nodiscard]] OffCpuClock& off_cpu() noexcept { return off_cpu_; }

  // Opens a frame at the top. This sets its id, parent and depth.
  OpenFrame& push(const OpenFrame& frame) {
    return push_filled([&frame](OpenFrame& opened) { opened = frame; });
  }
  // The same: `fill` sets what a new frame does not have.
  template <typename Fill>
  OpenFrame& push_filled(const Fill& fill) {
    const Below under = below();
    OpenFrame& opened = frames_.emplace_back();
    fill(opened);
    enter(opened, under);
    return opened;
  }
  // Ends the frame at the top.
  void pop(CallEnd how, const StreamPosition& end);
  // Ends the frame at the top and those that jumped to it: all share the return address.
  void pop_chain(CallEnd how, const StreamPosition& end);
  // Ends the frames from the top down to `size` frames. Frames are not exact any more unless `exact`.
  void pop_to(std::size_t size, CallEnd how, const StreamPosition& end, bool exact);
  // Removes the top frame and its rows. False: it has inner frames, or none is below it.
  [[nodiscard]] bool cancel();
  // Ends the last frames, which share a return address. They return to `caller`, which began before the
  // segment.
  void return_below(const OpenFrame& caller, const StreamPosition& end);
  // The following frames are of other executions: nothing is known of what is below them.
  void begin_segment(const StreamPosition& begin) noexcept;
  // The window begins. Of open frames, what is from here on counts.
  void begin_window(const StreamPosition& begin);

  // Adds the ids of open frames.
  void add_ids(std::vector<std::uint64_t>& ids) const;

  // Notes an address in the top frame that longjmp() may go to.
  void mark(std::uint64_t ip);
  // The frames with this mark. First comes the innermost one that longjmp() has not gone to since the mark
  // was noted, as cleanup functions of cancelled threads go on outwards; the others follow, innermost first.
  [[nodiscard]] std::vector<std::size_t> marked(std::uint64_t ip) const;
  // longjmp() goes to this mark of the top frame.
  void use_mark(std::uint64_t ip) noexcept;

  // The stub that the top frame is in. Null: it is in none. Valid until the next change of the stack.
  [[nodiscard]] Stub* stub() noexcept { return in_stub() ? &stubs_.back() : nullptr; }
  [[nodiscard]] bool in_stub() const noexcept {
    return !stubs_.empty() && stubs_.back().size == frames_.size();
  }
  void enter_stub(const Stub& stub);
  // Removes the stub, which the top frame leaves.
  [[nodiscard]] Stub leave_stub();
  void drop_stub() noexcept { stubs_.pop_back(); }

  // The innermost inlined call that the top frame is in; kNotInlined: it is in none.
  [[nodiscard]] std::uint32_t inlined() const noexcept {
    return has_inlined() ? inlined_.back().call : kNotInlined;
  }
  [[nodiscard]] std::size_t inlined_size() const noexcept { return inlined_.size(); }
  // Opens a frame of an inlined call above the top frame and its inlined calls. `begins`: where the call
  // begins.
  void open_inlined(const OpenFrame& frame, std::uint32_t call, bool begins);
  void close_inlined(CallEnd how, const StreamPosition& end);
  // Which of these frames goes on is not certain: frames from `first` on that are open.
  void doubt(std::size_t first = 0) noexcept;
  // How the last frame ended; from then on, RETURN.
  [[nodiscard]] CallEnd take_last_end() noexcept { return std::exchange(last_end_, CallEnd::RETURN); }

  // Changes the function of the top frame, which has just begun.
  void set_function(std::uint64_t entry_ip, std::uint32_t function);
  // The top frame, which has just begun, is of an imported function.
  void set_import(std::uint64_t import_ip, std::uint32_t function);
  // Stacks in files, without inlined calls: stack_state.cpp. What was read is taken up, unless it is damaged.
  template <typename Fields>
  void fields_of_state(Fields& fields);
  [[nodiscard]] bool take_up(const StateLimits& limits);
  // Where the next frame at the bottom begins: at the end of the frames before it.
  [[nodiscard]] const StreamPosition& bare_since() const noexcept { return bare_since_; }

 private:
  struct Mark {
    std::uint64_t ip = 0;
    std::size_t frame = 0;
    bool is_used = false;
  };
  struct Use {
    std::uint64_t instructions = 0;  // of frames that ended in the segment, each counted once
    std::uint64_t branches = 0;
    std::uint32_t segment = 0;
    std::uint32_t open = 0;  // frames
  };
  // How a frame of an inlined call ended.
  struct Visit {
    std::uint64_t function = UINT64_MAX;  // `id` of the frame that has its code
    std::uint64_t id = 0;
    std::uint64_t branches = UINT64_MAX;  // of the thread, at the last end of a frame that began the call
    bool has_begun = false;               // the execution has a frame that began the call
  };
  struct Inlined {
    OpenFrame frame;
    Visit visit;
    std::uint32_t call = kNotInlined;
    std::size_t size = 0;  // of frames_: it is above the last one of these
    bool begins = false;   // it began where the call begins
  };
  // Position and off-CPU time before the window, for frames that are open when it begins.
  struct Window {
    StreamPosition begin;
    OffCpuTime off_cpu;
  };
  [[nodiscard]] bool began_before_window(const OpenFrame& frame) const noexcept {
    return frame.id < ids_.first_inside || frame.begin.instructions < window_.begin.instructions;
  }
  [[nodiscard]] bool has_inlined() const noexcept {
    return !inlined_.empty() && inlined_.back().size == frames_.size();
  }
  [[nodiscard]] OpenFrame& innermost() noexcept {
    return has_inlined() ? inlined_.back().frame : frames_.back();
  }
  // Fields that a new frame gets from the innermost one.
  struct Below {
    std::uint64_t parent = 0;
    std::int32_t depth = 0;
    std::uint16_t flag = 0;  // FRAME_PARENT
  };
  [[nodiscard]] Below below() noexcept {
    if (frames_.empty()) return {};
    const OpenFrame& frame = innermost();
    return {frame.id, frame.depth + 1, FRAME_PARENT};
  }
  // Numbers a new frame.
  void enter(OpenFrame& frame, const Below& below) {
    frame.id = ids_.next++;
    if (below.flag != 0) {
      frame.parent = below.parent;
      frame.depth = below.depth;
      frame.flags |= below.flag;
    }
    frame.off_cpu = off_cpu_.begin();
    frame.space = owner_.space;
    find_cell(frame);
    count(frame);
  }
  void find_cell(OpenFrame& frame) {
    if (groups_ == nullptr) return;
    const bool is_above = (frame.flags & FRAME_PARENT) != 0;
    frame.cell = groups_->of(frame.function, frame.entry_ip, frame.space, frame.inline_level, is_above);
  }
  // From now on frames of its groups that begin are recursive.
  void count(OpenFrame& frame) {
    Use& use = use_of(frame.function);
    frame.flags &= static_cast<std::uint16_t>(~FRAME_RECURSIVE);
    if (use.open++ != 0) frame.flags |= std::uint16_t{FRAME_RECURSIVE};
    if (groups_ == nullptr) return;
    const MoreGroups::Cell& cell = groups_->cell(frame.cell);
    for (std::size_t i = 0; i < kMoreGroups; ++i)
      frame.more[i].is_recursive = use_of(cell.groups[i], 1 + i).open++ != 0;
  }
  void uncount(const OpenFrame& frame);
  void drop_stubs() noexcept;
  // `by`: 0: of the function; 1 + index in MoreGroups.
  [[nodiscard]] Use& use_of(std::uint32_t group, std::size_t by = 0) {
    std::vector<Use>& uses = uses_[by];
    if (group >= uses.size()) uses.resize(std::max<std::size_t>(group + 1, uses.size() * 2));
    Use& use = uses[group];
    if (use.segment != segment_) {
      use.segment = segment_;
      use.instructions = use.branches = 0;
    }
    return use;
  }
  void push_below(OpenFrame frame);
  void mark_undecided(OpenFrame& open, std::size_t index) const noexcept;
  void share_more(const OpenFrame& open, Frame& frame);
  void emit(const OpenFrame& open, CallEnd how, const StreamPosition& end);
  void on_off_cpu(const OffCpuInterval& interval) override { sink_.on_off_cpu(interval, owner_); }
  void on_other_stack() override { sink_.on_other_stack(owner_); }

  FrameIds& ids_;
  MoreGroups* groups_;  // null: by function only
  FrameSink& sink_;
  Owner owner_;
  std::vector<OpenFrame> frames_;
  std::vector<Inlined> inlined_;                        // outermost first: calls that are inlined in frames
  std::vector<Visit> visits_;                           // by inlined call
  std::vector<Mark> marks_;                             // by frame, innermost last
  std::vector<Stub> stubs_;                             // innermost last
  std::array<std::vector<Use>, 1 + kMoreGroups> uses_;  // by group
  Window window_;
  std::uint32_t segment_ = 0;
  StreamPosition segment_begin_;
  OffCpuClock off_cpu_;
  OffCpuTime segment_off_cpu_;  // at the segment's begin
  StreamPosition bare_since_;
  std::int32_t bottom_depth_ = 0;
  std::size_t doubt_begin_ = 0;  // frames in [doubt_begin_, doubt_end_) are undecided
  std::size_t doubt_end_ = 0;
  CallEnd last_end_ = CallEnd::RETURN;
};

}  // namespace ptkit::tables::calls
