// Stacks that are not in use: coroutines, fibers, goroutines. Code that loads the stack pointer suspends one
// stack and goes on with another one; longjmp() and exceptions go to a frame below the top, or to a frame of
// another stack. Which of several stacks or frames it is may be ambiguous: see ambiguous_return.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "tables/calls/stack/ambiguous_return.h"
#include "tables/calls/stack/current_stack.h"

namespace ptkit::tables::calls {

struct SuspendedStack {
  ThreadKey key;                // the thread that left it
  std::uint64_t resume_ip = 0;  // 0: not known
  std::unique_ptr<Thread> thread;
};

struct SuspendedState {
  std::vector<SuspendedStack> stacks;           // latest last
  std::uint64_t numbers = 0;                    // of stacks that were switched
  std::unordered_set<std::uint32_t> switchers;  // functions that have switched stacks
  bool jumps_to_stacks = false;                 // longjmp() has gone to another stack
};

class SuspendedStacks {
 public:
  static constexpr std::size_t kMostStacks = std::size_t{1} << 10U;

  SuspendedStacks(CurrentStack& current, WaitingRows& waiting)
      : current_(current),
        facts_(current.code().facts()),
        edges_(current.code().edges()),
        waiting_(waiting) {}

  [[nodiscard]] SuspendedState& state() noexcept { return state_; }
  [[nodiscard]] const SuspendedState& state() const noexcept { return state_; }
  // Stacks may also go on where no row of this stream shows it: in other streams, in other threads.
  void set_shares_stacks(bool shares) noexcept { shares_stacks_ = shares; }
  [[nodiscard]] bool shares_stacks() const noexcept { return shares_stacks_; }
  // They may have gone on.
  void doubt_all() noexcept;
  // exec() ends the stacks of a thread.
  void end_of(const ThreadKey& key, const StreamPosition& position);

  // The function at the top continues at `step.to_ip`, on the stack that waits there, or on a new one.
  void switch_stack(const BranchStep& step, const StreamPosition& after);
  // A function that is not known to switch stacks goes to an address that does not fit the top frame. False:
  // it stays on this stack.
  [[nodiscard]] bool leave_stack(const BranchStep& step, const StreamPosition& after);
  // The function at the top calls a scheduler, on another stack. A stack that is left for good ends. Returns
  // the position on that stack.
  [[nodiscard]] StreamPosition enter_scheduler(bool for_good, const StreamPosition& after);

  // Control goes on within a frame below the top: after a call of setjmp(), or where an exception is caught.
  [[nodiscard]] bool go_below(const BranchStep& step, const StreamPosition& after, bool only_certain);
  // longjmp(): control goes on after a call of setjmp().
  [[nodiscard]] bool jump_to_mark(const BranchStep& step, const StreamPosition& after);

  // Goes to the candidate that fits, or else to the most likely one. Returns the rows that have waited.
  [[nodiscard]] std::vector<WaitingRow> decide();

 private:
  // A frame that longjmp() may go to, as the number of a Candidate.
  struct MarkedFrame {
    static constexpr unsigned kShift = 32;
    std::size_t suspended = 0;  // 1 + number of a suspended stack; 0: of the stack in use
    std::size_t frame = 0;

    [[nodiscard]] std::size_t number() const noexcept { return suspended << kShift | frame; }
    [[nodiscard]] static MarkedFrame of(std::size_t number) noexcept {
      return {number >> kShift, number & ((std::size_t{1} << kShift) - 1)};
    }
  };

  [[nodiscard]] ThreadStack& stack() noexcept { return current_.stack(); }
  // Stacks may go on that no row has shown, or elsewhere.
  [[nodiscard]] bool may_be_elsewhere() const noexcept {
    return shares_stacks_ || current_.state().has_unseen_stacks;
  }
  [[nodiscard]] bool is_inner(const BranchStep& step);
  [[nodiscard]] bool has_function_below(const CodeLocation& code) const noexcept;

  void choose(std::vector<Candidate> candidates, const BranchStep& step, WaitingRow::Kind kind);
  void choose_stack(const std::vector<std::size_t>& waiting, std::size_t same, const BranchStep& step,
                    const StreamPosition& after);
  void doubt_stacks(const std::vector<Candidate>& stacks, const BranchStep& step,
                    const StreamPosition& after);
  void doubt_marked(const std::vector<Candidate>& frames, const BranchStep& step,
                    const StreamPosition& after);

  [[nodiscard]] bool is_waiting(const SuspendedStack& one, std::uint64_t ip,
                                const CodeLocation& code) const noexcept;
  [[nodiscard]] std::vector<std::size_t> waiting_at(std::uint64_t ip);
  void stay(const BranchStep& step, const StreamPosition& after);
  void go_on_anew(const BranchStep& step, const StreamPosition& after);
  void go_on_with(std::size_t number, const BranchStep& step, const StreamPosition& after);
  [[nodiscard]] bool resume_suspended(const BranchStep& step, const StreamPosition& after);
  [[nodiscard]] StreamPosition take_suspended(std::size_t index, const StreamPosition& after,
                                              std::uint64_t resume_ip);
  [[nodiscard]] StreamPosition use_stack(std::unique_ptr<Thread> next, const StreamPosition& after,
                                         std::uint64_t resume_ip);
  void suspend(std::unique_ptr<Thread> thread, const StreamPosition& after, std::uint64_t resume_ip);

  [[nodiscard]] std::vector<Candidate> marked_frames(std::uint64_t ip) const;
  void leave_to_mark(std::size_t number, const BranchStep& step, StreamPosition after, bool is_certain);
  void unwind_to(std::size_t size, CallEnd how, const StreamPosition& after, bool exact);

  CurrentStack& current_;
  CodeFacts& facts_;
  EdgeCache& edges_;
  WaitingRows& waiting_;
  SuspendedState state_;
  bool shares_stacks_ = false;
};

}  // namespace ptkit::tables::calls
