// Rebuilds the call stacks of a stream's threads from its branches. A return is matched by its address, never
// by a name. docs/calls.md has the rules.
//
//   branches, packets on, gaps, threads -> StackMachine -> ThreadStack of each thread -> FrameSink
//
// Each part owns its state, and may use the parts before it:
//
//   CurrentStack      the stack in use, and the code that is executed on it
//   InlinedFrames     frames of inlined calls
//   WaitingRows       rows that wait until returns show where control went
//   SuspendedStacks   stacks that are not in use; longjmp() and exceptions
//   StreamThreads     stacks of the stream's threads
//   NearBranches      calls, jumps and returns
//   PlainBranches     the most frequent ones of these, in less time
//   FarTransfers      system calls, interrupts, signals, code that is not traced
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "tables/calls/stack/far_transfers.h"
#include "tables/calls/stack/inlined_frames.h"
#include "tables/calls/stack/plain_branches.h"
#include "tables/calls/stack/stream_threads.h"

namespace ptkit::tables::calls {

class StackMachine;

// Looks at the stack between rows.
class RowProbe {
 public:
  virtual ~RowProbe() = default;
  // `machine` has all rows before `row`, of which the last one is of `owner`. `kind`: of a branch, or a
  // tables::columns::MarkKind.
  virtual void before_row(const BranchStep& row, std::uint8_t kind, StackMachine& machine,
                          const Owner& owner) = 0;
};

class StackMachine {
 public:
  // `groups`: by which recursion is looked for, too, and which must outlive this; null: by function only.
  StackMachine(CodeFacts& facts, FrameSink& sink, Tails tails = Tails::NESTED, MoreGroups* groups = nullptr)
      : current_(facts, sink, groups),
        inlined_(current_),
        waiting_(current_.code()),
        suspended_(current_, waiting_),
        threads_(current_, suspended_),
        near_(current_, suspended_, tails),
        plain_(current_, tails),
        far_(current_, suspended_, near_) {}

  // In the order of the stream.
  void on_branch(const BranchStep& step);
  // A branch of which `plain_branches.h` knows what it does. False: it is for on_branch(). `position_of` has
  // its position.
  template <typename PositionOf>
  [[nodiscard]] bool on_plain_branch(const PlainBranch& branch, const PositionOf& position_of) {
    if (has_ended_ || waiting_.is_open() || threads_.is_left()) return false;
    return plain_.take(branch, position_of);
  }
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
  // Until the next on_owner(), other threads are executed.
  void on_leave(const StreamPosition& position);
  // The kernel switches to another thread, or back to the same one: by a return, or while packets were
  // disabled. They are enabled at `ip`.
  void on_task_switch(const BranchStep& step, const Owner& owner);
  void on_task_enabled(std::uint64_t ip, const StreamPosition& position, const Owner& owner);
  // The window of frames begins (0), or ends (1): then no row that follows counts.
  void on_limit(std::size_t number, const StreamPosition& position);
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  // Ends all open frames.
  void finish(const StreamPosition& position);

  // Rows wait until they show which of several frames control went to. `probe`, which may be null, sees these
  // rows as they are applied; the user shows it all others.
  void set_probe(RowProbe* probe) noexcept { probe_ = probe; }
  // Frames of inlined calls, which need all jumps that are taken. Call it before the first row. `inlines`
  // must outlive this.
  void set_inlines(InlineFacts* inlines) noexcept { current_.code().set_inlines(inlines); }
  // Frames are those between two limits. Call it before the first row.
  void set_window() noexcept { current_.ids().is_before = true; }
  // Frames have those below: see Frame::callers. Without a window and inlined calls.
  void give_callers() noexcept { current_.ids().gives_callers = true; }
  // Null: threads stay in this stream.
  void set_moves(const TaskMoves* moves) noexcept { threads_.set_moves(moves); }
  void set_shares_stacks(bool shares) noexcept { suspended_.set_shares_stacks(shares); }
  // Stacks in files: stack_state.cpp. save() is false where rows wait, and with inlined calls. restore()
  // comes before the first row. If it is false, the fields are damaged, and the machine of no use.
  [[nodiscard]] bool save(base::FieldWriter& fields);
  [[nodiscard]] bool restore(base::FieldReader& fields, const StateLimits& limits);

  [[nodiscard]] bool is_ambiguous() const noexcept { return waiting_.is_open(); }
  // Decides without the rows that follow.
  void decide_open() {
    if (waiting_.is_open()) decide();
  }
  // A return of the top frame goes on with another thread's stack.
  [[nodiscard]] bool may_switch_task() const noexcept {
    return !waiting_.is_open() && !current().empty() && (current().top().open & OPEN_TASK_SWITCH) != 0;
  }
  // The entry of the kernel's scheduler, which the top frame returns to; 0: not known.
  [[nodiscard]] std::uint64_t scheduler() const noexcept {
    const std::size_t size = threads_.above_scheduler();
    return size == 0 ? 0 : current().at(size - 1).entry_ip;
  }
  // The open frames of the thread that the last rows are of.
  [[nodiscard]] const ThreadStack& current() const noexcept { return current_.stack(); }
  // How many frames there were so far: the `id` of the next one.
  [[nodiscard]] std::uint64_t frames() const noexcept { return current_.state().ids.next; }
  // Of all threads, and stacks that are not in use.
  struct OpenFrames {
    std::uint64_t frames = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] OpenFrames open_frames() const noexcept;
  // Frames that were removed, and of which other frames have got the numbers: the lowest number since the
  // last call of this. UINT64_MAX: none.
  [[nodiscard]] std::uint64_t cancelled() noexcept {
    return std::exchange(current_.ids().cancelled, UINT64_MAX);
  }

 private:
  [[nodiscard]] ThreadStack& stack() noexcept { return current_.stack(); }
  void apply_branch(const BranchStep& step, const StreamPosition& position);
  void wait(const WaitingRow& row);
  void decide();
  void apply(const WaitingRow& row);
  template <typename Fields>
  void fields_of_state(Fields& fields);
  [[nodiscard]] bool take_up(StateLimits limits);

  CurrentStack current_;
  InlinedFrames inlined_;
  WaitingRows waiting_;
  SuspendedStacks suspended_;
  StreamThreads threads_;
  NearBranches near_;
  PlainBranches plain_;
  FarTransfers far_;
  RowProbe* probe_ = nullptr;
  bool has_ended_ = false;  // the window
};

}  // namespace ptkit::tables::calls
