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
#include <utility>
#include <vector>

#include "calls/code_facts.h"
#include "calls/edge_cache.h"
#include "calls/frame.h"
#include "calls/thread_stack.h"
#include "flow/rows/rows.h"

namespace ptkit::calls {

// A branch, and what was before it.
struct Step {
  Place place;
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  flow::BranchKind kind = flow::BranchKind::COND;
  std::uint8_t flags = 0;  // flow::RowFlag

  [[nodiscard]] bool from_known() const noexcept { return (flags & flow::FROM_KNOWN) != 0; }
  [[nodiscard]] bool to_known() const noexcept { return (flags & flow::TO_KNOWN) != 0; }
};

// Tail calls: the function that jumps stays below the other one, or ends.
enum class Tails : std::uint8_t { NESTED, REPLACED };

class StackMachine {
 public:
  // Frames of a thread that may be open, and tail frames that may share a return address.
  static constexpr std::size_t kMostFrames = std::size_t{1} << 20U;
  static constexpr std::uint32_t kMostTails = 1U << 12U;
  static constexpr std::size_t kMostParked = std::size_t{1} << 10U;

  // `groups`: what recursion is looked for in; null: functions.
  StackMachine(CodeFacts& facts, FrameSink& sink, Tails tails = Tails::NESTED, FrameGroups* groups = nullptr);

  // In the order of the stream.
  void on_branch(const Step& step);
  // Packets are enabled at `ip`.
  void on_enabled(std::uint64_t ip, const Place& place);
  // Packets are enabled, and control flow is at `ip`. Nothing happened there.
  void on_status(std::uint64_t ip, const Place& place);
  // Control flow is not known before `place`.
  void on_gap(const Place& place);
  // The following rows are of this thread and space.
  void on_owner(const Owner& owner, const Place& place);
  // What is executed from here to the next on_owner() is of other threads.
  void on_leave(const Place& place);
  // Ends all open frames.
  void finish(const Place& place);

 private:
  // Why packets are disabled, if the last branch says so.
  enum class Off : std::uint8_t { NONE, ASYNC };
  // A frame that a gap has ended.
  struct Suspended {
    std::uint64_t id = 0;
    std::uint64_t return_ip = 0;  // 0: not known
  };
  struct Thread {
    Thread(FrameIds& ids, FrameGroups* groups, FrameSink& sink, const Owner& owner)
        : stack(ids, groups, sink, owner) {}
    ThreadStack stack;
    std::vector<Suspended> suspended;  // innermost last
    std::size_t matched = 0;           // returns in a row that matched them
    Off off = Off::NONE;
    std::uint64_t async_ip = 0;
    // Counts of the thread: those of the stream less those of other threads.
    std::uint64_t instructions = 0;
    std::uint64_t branches = 0;
    std::uint64_t other_instructions = 0;
    std::uint64_t other_branches = 0;
    bool begun = false;
  };
  using Key = std::pair<std::int64_t, std::int64_t>;
  // A stack that is not in use, of the thread `key`.
  struct Parked {
    Key key;
    std::uint64_t resume_ip = 0;
    std::unique_ptr<Thread> thread;
  };

  [[nodiscard]] Place local(Place place) const noexcept;
  [[nodiscard]] ThreadStack& stack() noexcept { return thread_->stack; }
  // The top frame is a system call or interrupt of which the code is not traced.
  [[nodiscard]] bool in_leaf() noexcept {
    return !stack().empty() && stack().top().function - kSyscallFunction < kFirstFunction - kSyscallFunction;
  }
  void ensure_frame(std::uint64_t ip, const Place& place);
  void follow_code(const Place& place) {
    if (!has_code_ || (place.time_known && place.tsc >= version_.until)) find_code(place);
  }
  void find_code(const Place& place);
  void push(OpenFrame& frame, const Place& begin);
  void push_unknown();
  [[nodiscard]] OpenFrame frame_at(How how, std::uint64_t ip) const;
  void end_all(EndHow how, const Place& end);
  void end_thread(Thread& thread, const Place& place);
  [[nodiscard]] static std::uint16_t open_flags(const EdgeFacts& edge) noexcept;
  void note(AnomalyKind kind, const Step& step, const Place& place);

  void on_call(const Step& step, const Place& after);
  void on_jump(const Step& step, const Place& after, bool indirect);
  void leave_stub(const EdgeFacts& edge);
  void tail(const Step& step, const EdgeFacts& edge, const Place& after);
  void on_return(const Step& step, const Place& after);
  void switch_stack(const Step& step, const Place& after);
  [[nodiscard]] Place use_stack(std::unique_ptr<Thread> next, const Place& after, std::uint64_t resume_ip);
  void return_elsewhere(const Step& step, const Place& after);
  [[nodiscard]] bool leave_thunk(const Step& step, const Place& after);
  [[nodiscard]] bool return_deeper(const Step& step, const Place& after);
  void return_to_unseen(const Step& step, const Place& after);
  void end_call(std::uint64_t to, const Place& after);
  [[nodiscard]] bool go_below(const Step& step, const Place& after, bool only_certain);
  void on_leaf(const Step& step, const Place& after, How how);
  void on_async(const Step& step, const Place& after);
  void on_kernel_return(const Step& step, const Place& after);
  void on_abort(const Step& step, const Place& after);
  void enter_user(const Step& step, const Place& place);
  [[nodiscard]] bool end_signal(std::uint64_t ip, bool by_syscall, const Step& step, const Place& place);
  void go_on_at(const Step& step, const Place& place);
  [[nodiscard]] bool is_bottom() noexcept;

  CodeFacts& facts_;
  FrameSink& sink_;
  Tails tails_;
  FrameGroups* groups_;
  EdgeCache edges_;
  FrameIds ids_;
  std::map<Key, std::unique_ptr<Thread>> threads_;
  std::vector<Parked> parked_;  // latest last
  Key key_;                     // of thread_
  Thread* thread_ = nullptr;
  Owner owner_;
  CodeVersion version_;
  bool left_ = false;         // since on_leave()
  bool has_code_ = false;     // facts_ follow the owner's space
  std::uint64_t search_ = 0;  // frames that may still be searched: see return_deeper()
};

}  // namespace ptkit::calls
