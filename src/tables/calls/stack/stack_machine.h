// Rebuilds the call stacks of a stream's threads from its branches. A return is matched by its address, never
// by a name. docs/calls.md has the rules.
//
//   branches, packets on, gaps, threads -> StackMachine -> ThreadStack of each thread -> FrameSink
//                                             |
//                                             +-> CodeFacts
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "flow/rows/rows.h"
#include "tables/calls/code/code_facts.h"
#include "tables/calls/code/edge_cache.h"
#include "tables/calls/code/inline_facts.h"
#include "tables/calls/stack/ambiguous_return.h"
#include "tables/calls/stack/frame.h"
#include "tables/calls/stack/task_moves.h"
#include "tables/calls/stack/thread_stack.h"

namespace ptkit::tables::calls {

[[nodiscard]] inline StreamPosition after_branch(StreamPosition position) noexcept {
  ++position.instructions;
  ++position.stream_instructions;
  ++position.branches;
  return position;
}

// A branch, and what was before it.
struct Step {
  StreamPosition position;
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  flow::BranchKind kind = flow::BranchKind::COND;
  std::uint8_t flags = 0;  // flow::RowFlag
  bool leaves = false;     // to code that is not traced: packets are disabled there

  [[nodiscard]] bool from_known() const noexcept { return (flags & flow::FROM_KNOWN) != 0; }
  [[nodiscard]] bool to_known() const noexcept { return (flags & flow::TO_KNOWN) != 0; }
};

[[nodiscard]] constexpr bool is_far_transfer(flow::BranchKind kind) noexcept {
  return kind == flow::BranchKind::FAR_JUMP || kind == flow::BranchKind::FAR_RETURN ||
         kind == flow::BranchKind::IRET;
}

// Tail calls: the function that jumps stays below the other one, or ends.
enum class Tails : std::uint8_t { NESTED, REPLACED };

class StackMachine;

// Looks at the stack between rows.
class RowProbe {
 public:
  virtual ~RowProbe() = default;
  // `machine` has all rows before `row`, of which the last one is of `owner`.
  virtual void before_row(const StreamPosition& row, StackMachine& machine, const Owner& owner) = 0;
};

class StackMachine {
 public:
  // Frames of a thread that may be open, and tail frames that may share a return address.
  static constexpr std::size_t kMostFrames = std::size_t{1} << 20U;
  static constexpr std::uint32_t kMostTails = 1U << 12U;
  static constexpr std::size_t kMostSuspended = std::size_t{1} << 10U;
  static constexpr std::size_t kNone = SIZE_MAX;

  // `groups`: by which recursion is looked for, too, and which must outlive this; null: by function only.
  StackMachine(CodeFacts& facts, FrameSink& sink, Tails tails = Tails::NESTED, MoreGroups* groups = nullptr);

  // In the order of the stream.
  void on_branch(const Step& step);
  // Packets are enabled at `ip`.
  void on_enabled(std::uint64_t ip, const StreamPosition& position);
  // Packets are enabled, and control flow is at `ip`. Nothing happened there.
  void on_status(std::uint64_t ip, const StreamPosition& position);
  // Packets are disabled.
  void on_disabled(const StreamPosition& position);
  // Control flow is not known between the last row before it and `position`.
  void on_gap(const StreamPosition& last, const StreamPosition& position);
  // The following rows are of this thread and space.
  void on_owner(const Owner& owner, const StreamPosition& position);
  // What is executed from here to the next on_owner() is of other threads.
  void on_leave(const StreamPosition& position);
  // The kernel switches to another thread, or back to the same one: by a return, or while packets were
  // disabled. They are enabled at `ip`.
  void on_task_switch(const Step& step, const Owner& owner);
  void on_task_enabled(std::uint64_t ip, const StreamPosition& position, const Owner& owner);
  // The window that frames are asked for begins (0), or ends (1): then nothing that follows counts.
  void on_limit(std::size_t number, const StreamPosition& position);
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  // Ends all open frames.
  void finish(const StreamPosition& position);

  // Rows wait until they show which of several frames control went to. `probe`, which may be null, sees these
  // rows as they are applied; the user shows it all others.
  void set_probe(RowProbe* probe) noexcept { probe_ = probe; }
  // Frames of inlined calls, which need all jumps that are taken. Call it before the first row. `inlines`
  // must outlive this.
  void set_inlines(InlineFacts* inlines) noexcept { inlines_ = inlines; }
  // Frames are what happens between two limits. Call it before the first row.
  void set_window() noexcept { ids_.is_before = true; }
  // Stacks in files: stack_state.cpp. save() is false where rows are undecided, and with inlined calls.
  // restore() comes before the first row. If it is false, the fields are damaged, and the machine of no use.
  [[nodiscard]] bool save(base::FieldWriter& fields);
  [[nodiscard]] bool restore(base::FieldReader& fields, const StateLimits& limits);
  // Null: threads stay in this stream.
  void set_moves(const TaskMoves* moves) noexcept { moves_ = moves; }
  // Stacks may also go on where this machine sees nothing of them: in other streams, in other threads.
  void set_shares_stacks(bool shares) noexcept { shares_stacks_ = shares; }
  [[nodiscard]] bool is_ambiguous() const noexcept { return ambiguous_.is_open(); }
  // Decides without what follows.
  void decide_open() {
    if (ambiguous_.is_open()) decide();
  }

  // A return of the top frame goes on with another thread's stack.
  [[nodiscard]] bool may_switch_task() const noexcept {
    const ThreadStack& stack = thread_->stack;
    return !ambiguous_.is_open() && !stack.empty() && (stack.top().open & OPEN_TASK_SWITCH) != 0;
  }
  // The entry of the kernel's scheduler, which the top frame returns to; 0: not known.
  [[nodiscard]] std::uint64_t scheduler() const noexcept;
  // The open frames of the thread that the last rows are of.
  [[nodiscard]] const ThreadStack& current() const noexcept { return thread_->stack; }
  // How many frames there were so far: the `id` of the next one.
  [[nodiscard]] std::uint64_t frames() const noexcept { return ids_.next; }
  // Of all threads, and stacks that are not in use.
  struct OpenFrames {
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] OpenFrames open_frames() const noexcept;
  // Frames that never were, and of which other frames have got the numbers: the lowest number since the last
  // call of this. UINT64_MAX: none.
  [[nodiscard]] std::uint64_t cancelled() noexcept { return std::exchange(ids_.cancelled, UINT64_MAX); }

 private:
  // Why packets are disabled, if the last branch says so.
  enum class Off : std::uint8_t { NONE, ASYNC };
  // A frame that a gap has ended.
  struct GapFrame {
    std::uint64_t id = 0;
    std::uint64_t return_ip = 0;  // 0: not known
  };
  struct Thread {
    Thread(FrameIds& ids, MoreGroups* groups, FrameSink& sink, const Owner& owner)
        : stack(ids, groups, sink, owner) {}
    ThreadStack stack;
    std::vector<GapFrame> gap_frames;  // innermost last
    std::size_t matched = 0;           // returns in a row that matched them
    StreamPosition left;               // where another thread came
    std::optional<Owner> executed;     // exec() ends frames of this one where the kernel returns
    Off off = Off::NONE;
    std::uint64_t async_ip = 0;
    std::uint64_t returning = 0;  // branches up to a jump to a thunk that returns; 0: there was none
    // Counts of the thread: those of the stream less those of other threads.
    std::uint64_t instructions = 0;
    std::uint64_t branches = 0;
    std::uint64_t other_instructions = 0;
    std::uint64_t other_branches = 0;
    // Of stacks that a thread switches; 0: it has switched none.
    std::uint64_t stack_number = 0;
    std::uint64_t resumed_by = 0;  // number of the stack that it went on after
    bool is_scheduler = false;     // it was entered by a call, and chooses which stack goes on
    bool begun = false;
  };
  // What waits until a frame is decided on, or the branch to one of several frames.
  struct Input {
    enum class Kind : std::uint8_t { BRANCH, ENABLED, DISABLED, LIMIT, LONGJMP, SWITCH };
    Step step;
    Kind kind = Kind::BRANCH;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;
  [[nodiscard]] static Key key_of(const Owner& owner) noexcept;
  // A stack that is not in use, of the thread `key`.
  struct SuspendedStack {
    Key key;
    std::uint64_t resume_ip = 0;  // 0: not known
    std::unique_ptr<Thread> thread;
  };

  // A frame that longjmp() may go to, as the number of a Candidate.
  struct MarkedFrame {
    static constexpr unsigned kShift = 32;
    std::size_t suspended = 0;  // 1 + number in suspended_; 0: of the stack in use
    std::size_t frame = 0;

    [[nodiscard]] std::size_t number() const noexcept { return suspended << kShift | frame; }
    [[nodiscard]] static MarkedFrame of(std::size_t number) noexcept {
      return {number >> kShift, number & ((std::size_t{1} << kShift) - 1)};
    }
  };

  // Instructions from the target of a branch, or from where packets were enabled.
  struct Run {
    StreamPosition begin;   // with counts of the stream
    StreamPosition paused;  // behind the instructions that are done
    std::uint64_t ip = 0;
    std::uint64_t done = 0;
    flow::BranchKind kind = flow::BranchKind::JUMP;  // of the branch
    std::uint8_t flags = 0;                          // of the branch: flow::RowFlag
    bool is_open = false;
    bool after_branch = false;
  };

  [[nodiscard]] StreamPosition local(StreamPosition position) const noexcept;
  [[nodiscard]] ThreadStack& stack() noexcept { return thread_->stack; }
  // The top frame is a system call or interrupt of which the code is not traced.
  [[nodiscard]] bool in_leaf() noexcept {
    return !stack().empty() && stack().top().function - kSyscallFunction < kFirstFunction - kSyscallFunction;
  }
  void ensure_frame(std::uint64_t ip, const StreamPosition& position);
  template <typename Fields>
  static void thread_fields(Fields& fields, Thread& thread);
  template <typename Fields>
  void fields_of_state(Fields& fields);
  [[nodiscard]] bool take_up(StateLimits limits);
  void follow_code(const StreamPosition& position) {
    if (!has_code_ || (position.time_known && position.tsc >= version_.until)) find_code(position);
  }
  void find_code(const StreamPosition& position);
  void push(OpenFrame& frame, const StreamPosition& begin);
  void push_unknown();
  [[nodiscard]] std::uint32_t unknown_function() const;
  [[nodiscard]] std::uint32_t import_of(const Step& step);
  [[nodiscard]] std::uint32_t import_of_call(const Step& step);
  static void set_import(OpenFrame& frame, const Step& step, std::uint32_t function) noexcept;
  void leave_by_import(const Step& step, std::uint32_t function, const StreamPosition& after);
  [[nodiscard]] OpenFrame frame_at(CallKind how, std::uint64_t ip) const;
  void end_all(CallEnd how, const StreamPosition& end);
  void end_thread(Thread& thread, const StreamPosition& position);
  void end_suspended(Thread& thread, CallEnd how, StreamPosition end);
  void end_moved(std::uint64_t until);
  void begin_window(const StreamPosition& position);
  void begin_window_of(Thread& thread, const StreamPosition& position);
  void change_program(const StreamPosition& position);
  void begin_program(const StreamPosition& position);
  void end_program(const Step& step, const StreamPosition& after);
  [[nodiscard]] std::size_t above_scheduler() const noexcept;
  [[nodiscard]] static std::uint16_t open_flags(const EdgeFacts& edge) noexcept;
  [[nodiscard]] static std::uint16_t kernel_open_flags(std::uint32_t code_flags) noexcept;
  [[nodiscard]] static std::uint16_t inner_open_flags(const EdgeFacts& edge) noexcept;
  void note(AnomalyKind kind, const Step& step, const StreamPosition& position);

  // Inlined calls: stack_inlines.cpp.
  void begin_run(std::uint64_t ip, const StreamPosition& position);
  void run_to_branch(const Step& step);
  void pause_run(const StreamPosition& position);
  [[nodiscard]] std::uint64_t count_in_run(const StreamPosition& end) const noexcept;
  void end_run(const StreamPosition& end, std::uint64_t last_ip = 0, bool executes_last = false);
  [[nodiscard]] StreamPosition position_in_run(const InlineChange& change,
                                               const StreamPosition& end) const noexcept;
  void enter_inlined(const InlineChange& change, const StreamPosition& position);
  [[nodiscard]] CallEnd end_of_inlined(const InlineChange& change) noexcept;

  // Ambiguous returns: stack_choices.cpp.
  void choose(std::vector<Candidate> candidates, const Step& step, Input::Kind kind);
  void wait(const Input& input);
  [[nodiscard]] bool can_wait(const Step& step);
  void decide();
  void doubt_stacks(const std::vector<Candidate>& stacks, const Step& step, const StreamPosition& after);
  void doubt_marked(const std::vector<Candidate>& frames, const Step& step, const StreamPosition& after);
  void apply(const Input& input);
  void on_call(const Step& step, const StreamPosition& after);
  void call(const Step& step, OpenFrame& frame, const StreamPosition& after);
  void on_jump(const Step& step, const StreamPosition& after, bool indirect);
  [[nodiscard]] bool call_in_stub(const EdgeFacts& edge, const StreamPosition& after);
  void enter_retpoline(const EdgeFacts& edge);
  void enter_stub(const EdgeFacts& edge, Stub stub);
  [[nodiscard]] static bool enters_inside(const EdgeFacts& edge) noexcept;
  void leave_stub(const Step& step, const StreamPosition& after);
  void lead_on(const EdgeFacts& edge, const StreamPosition& after);
  void enter_function(const EdgeFacts& edge, const StreamPosition& after);
  void enter_stub_as_function(const StreamPosition& after);
  void skip_rsb_stuffing() {
    if ((stack().top().open & OPEN_RSB_STUFFING) != 0) static_cast<void>(stack().cancel());
  }
  void tail(const Step& step, const EdgeFacts& edge, const StreamPosition& after, bool is_certain = true);
  void push_tail(const Step& step, const EdgeFacts& edge, const StreamPosition& after,
                 bool is_certain = true);
  void on_return(const Step& step, const StreamPosition& after);
  void switch_stack(const Step& step, const StreamPosition& after);
  [[nodiscard]] bool is_inner(const Step& step);
  [[nodiscard]] bool leave_stack(const Step& step, const StreamPosition& after);
  void choose_stack(const std::vector<std::size_t>& waiting, std::size_t same, const Step& step,
                    const StreamPosition& after);
  void stay(const Step& step, const StreamPosition& after);
  // Stacks may go on that this machine has not seen, or elsewhere.
  [[nodiscard]] bool may_be_elsewhere() const noexcept { return shares_stacks_ || has_unseen_stacks_; }
  [[nodiscard]] bool is_waiting(const SuspendedStack& one, std::uint64_t ip,
                                const CodeLocation& code) const noexcept;
  [[nodiscard]] bool has_function_below(const CodeLocation& code) const noexcept;
  [[nodiscard]] std::vector<std::size_t> waiting_at(std::uint64_t ip);
  void go_on_anew(const Step& step, const StreamPosition& after);
  void go_on_with(std::size_t suspended, const Step& step, const StreamPosition& after);
  [[nodiscard]] bool resume_suspended(const Step& step, const StreamPosition& after);
  [[nodiscard]] StreamPosition take_suspended(std::size_t index, const StreamPosition& after,
                                              std::uint64_t resume_ip);
  [[nodiscard]] StreamPosition enter_scheduler(bool for_good, const StreamPosition& after);
  [[nodiscard]] StreamPosition use_stack(std::unique_ptr<Thread> next, const StreamPosition& after,
                                         std::uint64_t resume_ip);
  void return_elsewhere(const Step& step, const StreamPosition& after, bool in_stub);
  [[nodiscard]] bool is_unasked() noexcept;
  [[nodiscard]] bool leave_thunk(const Step& step, const StreamPosition& after);
  [[nodiscard]] bool is_thunk(const Step& step, const StreamPosition& after);
  [[nodiscard]] bool return_of_stub(const Step& step, const StreamPosition& after);
  [[nodiscard]] bool jump_by_return(const Step& step, const StreamPosition& after);
  [[nodiscard]] bool end_interrupted_thunk(const StreamPosition& after);
  [[nodiscard]] std::size_t frame_returning_to(std::uint64_t ip) noexcept;
  [[nodiscard]] bool return_deeper(const Step& step, const StreamPosition& after);
  void return_to_unseen(const Step& step, const StreamPosition& after);
  void return_to_untraced(const Step& step, const StreamPosition& after);
  [[nodiscard]] bool is_pushed_target(const Step& step);
  [[nodiscard]] bool is_unseen() noexcept;
  void resume_caller(const Step& step, const StreamPosition& after);
  void end_call(std::uint64_t to, const StreamPosition& after);
  [[nodiscard]] bool jump_to_mark(const Step& step, const StreamPosition& after);
  [[nodiscard]] std::vector<Candidate> marked_frames(std::uint64_t ip) const;
  void leave_to_mark(std::size_t number, const Step& step, StreamPosition after, bool is_certain);
  [[nodiscard]] bool go_below(const Step& step, const StreamPosition& after, bool only_certain);
  void unwind_to(std::size_t size, CallEnd how, const StreamPosition& after, bool exact);
  // Far transfers: stack_far.cpp.
  void on_far_call(const Step& step, const StreamPosition& after);
  void on_far_jump(const Step& step, const StreamPosition& after);
  void on_far_return(const Step& step, const StreamPosition& after);
  [[nodiscard]] bool go_back_far(const Step& step, const StreamPosition& after);
  [[nodiscard]] bool return_from_kernel(const Step& step, const StreamPosition& after);
  void on_leaf(const Step& step, const StreamPosition& after, CallKind how);
  void on_async(const Step& step, const StreamPosition& after);
  void on_kernel_return(const Step& step, const StreamPosition& after);
  void return_within_kernel(const Step& step, const StreamPosition& after);
  void on_abort(const Step& step, const StreamPosition& after);
  [[nodiscard]] std::size_t kernel_entry(std::uint64_t ip) noexcept;
  void enter_user(const Step& step, const StreamPosition& position);
  void renew_entry(std::uint64_t ip, const StreamPosition& position);
  [[nodiscard]] bool end_signal(std::uint64_t ip, bool by_syscall, const Step& step,
                                const StreamPosition& position);
  void next_signal(std::uint64_t ip, const StreamPosition& position);
  void go_on_at(const Step& step, const StreamPosition& position);
  void enter_from_untraced(std::uint64_t ip, const StreamPosition& position);
  [[nodiscard]] bool is_bottom() noexcept;

  CodeFacts& facts_;
  FrameSink& sink_;
  Tails tails_;
  MoreGroups* groups_;
  EdgeCache edges_;
  FrameIds ids_;
  std::map<Key, std::unique_ptr<Thread>> threads_;
  std::vector<SuspendedStack> suspended_;        // latest last
  std::uint64_t stacks_ = 0;                     // that were switched
  std::unordered_set<std::uint32_t> switchers_;  // functions that have switched stacks
  bool shares_stacks_ = false;
  bool has_unseen_stacks_ = false;  // stacks may have been left before the trace, or within a gap
  bool jumps_to_stacks_ = false;    // longjmp() has gone to another stack
  AmbiguousReturn<Input> ambiguous_;
  RowProbe* probe_ = nullptr;
  InlineFacts* inlines_ = nullptr;  // null: inlined calls have no frames
  Run run_;
  std::vector<std::uint32_t> entered_;  // inlined calls
  const TaskMoves* moves_ = nullptr;
  std::size_t replayed_ = 0;  // inputs that have waited, and come next
  Key key_;                   // of thread_
  Thread* thread_ = nullptr;
  Owner owner_;
  CodeVersion version_;
  bool left_ = false;         // since on_leave()
  bool has_ended_ = false;    // the window
  bool has_code_ = false;     // facts_ follow the owner's space
  std::uint64_t search_ = 0;  // frames that may still be searched: see return_deeper()
};

}  // namespace ptkit::tables::calls
