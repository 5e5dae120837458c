#include "tables/calls/stack/suspended_stacks.h"

#include <algorithm>
#include <utility>

#include "base/addresses.h"

namespace ptkit::tables::calls {

namespace {

constexpr std::size_t kMostBelow = 1U << 12U;  // frames below the top that are looked at

void end_stack(Thread& thread, CallEnd how, const StreamPosition& position) {
  const StreamPosition end = thread.counts.paused(position);
  thread.stack.off_cpu().finish(end);
  while (!thread.stack.empty()) thread.stack.pop(how, end);
}

}  // namespace

void SuspendedStacks::doubt_all() noexcept {
  for (SuspendedStack& one : state_.stacks) one.thread->stack.doubt();
}

void SuspendedStacks::end_of(const ThreadKey& key, const StreamPosition& position) {
  const auto is_of = [&key](const SuspendedStack& one) { return one.key == key; };
  for (const SuspendedStack& one : state_.stacks) {
    if (is_of(one)) end_stack(*one.thread, CallEnd::END, position);
  }
  std::erase_if(state_.stacks, is_of);
}

void SuspendedStacks::switch_stack(const BranchStep& step, const StreamPosition& after) {
  if (go_below(step, after, true)) return;  // unwinding loads the stack pointer, too
  const std::vector<std::size_t> waiting = waiting_at(step.to_ip);
  const bool returns = stack().top().returns_to(step.to_ip);
  const bool is_within = is_inner(step);
  const std::size_t chain = returns ? 1 + std::size_t{stack().top().tails} : 0;
  const std::size_t same = returns || is_within ? stack().size() - chain : kNoFrame;
  if (!waiting.empty()) return choose_stack(waiting, same, step, after);
  if (same != kNoFrame) {
    const bool may_leave = may_be_elsewhere() && state_.switchers.contains(stack().top().function);
    if (may_leave) doubt_stacks({Candidate(stack(), same, Candidate::kSame)}, step, after);
    return stay(step, after);
  }
  if (resume_suspended(step, after) || current_.return_deeper(step, after)) return;
  const bool may_return =
      step.kind == flow::BranchKind::RETURN && current_.is_bottom() && !facts_.at(step.to_ip).is(CODE_ENTRY);
  if (may_return) return current_.return_to_unseen(step, after);
  go_on_anew(step, after);
}

// A jump within a function that may switch stacks.
bool SuspendedStacks::is_inner(const BranchStep& step) {
  return step.from_known() && edges_.at(step.from_ip, step.to_ip).is(EDGE_INNER);
}

bool SuspendedStacks::leave_stack(const BranchStep& step, const StreamPosition& after) {
  if (!step.from_known() || step.to_ip >= base::kKernelHalf) return false;
  const OpenFrame& top = stack().top();
  const std::uint64_t entry = (top.flags & FRAME_ENTRY) != 0 ? top.entry_ip : step.from_ip;
  const bool loads = facts_.loads_stack_pointer(entry, step.from_ip);
  const std::vector<std::size_t> waiting = waiting_at(step.to_ip);
  const std::size_t below = current_.frame_returning_to(step.to_ip);
  const bool fits = below != kNoFrame || current_.is_bottom() || current_.is_unseen() || stack().in_handler();
  if (waiting.empty() && (!loads || fits || has_function_below(facts_.at(step.to_ip)))) return false;
  if (waiting.empty()) {
    go_on_anew(step, after);
    return true;
  }
  if (!loads && fits) return false;
  const std::size_t same = below == kNoFrame ? kNoFrame : below - stack().at(below).tails;
  choose_stack(waiting, same, step, after);
  return true;
}

bool SuspendedStacks::has_function_below(const CodeLocation& code) const noexcept {
  if (!code.is(CODE_KNOWN) || code.is(CODE_ENTRY)) return false;
  const ThreadStack& stack = current_.stack();
  const std::size_t least = stack.size() - std::min(stack.size(), kMostBelow);
  for (std::size_t i = stack.size() - 1; i-- > least;) {
    if (stack.at(i).function == code.function) return true;
  }
  return false;
}

// `step` leads to one of the candidates, the most likely one first. Its position is after the branch, with
// counts of the thread.
void SuspendedStacks::choose(std::vector<Candidate> candidates, const BranchStep& step,
                             WaitingRow::Kind kind) {
  waiting_.begin(std::move(candidates), {step, kind});
  if (waiting_.is_replaying()) static_cast<void>(decide());
}

// `same`: frames that are left of the stack in use if that goes on; kNoFrame: it does not.
void SuspendedStacks::choose_stack(const std::vector<std::size_t>& waiting, std::size_t same,
                                   const BranchStep& step, const StreamPosition& after) {
  std::vector<Candidate> candidates;
  candidates.reserve(waiting.size() + 2);
  for (const std::size_t one : waiting) {
    ThreadStack& other = state_.stacks[one].thread->stack;
    const bool returns = other.top().returns_to(step.to_ip);
    const std::size_t chain = returns ? 1 + std::size_t{other.top().tails} : 0;
    candidates.emplace_back(other, other.size() - std::min(other.size(), chain), one);
  }
  if (same != kNoFrame) candidates.emplace_back(stack(), same, Candidate::kSame);
  if (may_be_elsewhere()) candidates.push_back(Candidate::unknown(stack()));
  if (candidates.size() == 1) return go_on_with(waiting.front(), step, after);
  BranchStep cause = step;
  cause.position = after;
  choose(std::move(candidates), cause, WaitingRow::Kind::SWITCH);
}

// The stack in use goes on, where it returns to or within its function.
void SuspendedStacks::stay(const BranchStep& step, const StreamPosition& after) {
  if (stack().top().returns_to(step.to_ip)) return current_.end_call(step.to_ip, after);
  if (!is_inner(step)) static_cast<void>(current_.return_deeper(step, after));
}

// On a stack that is not known. It is a new one if a function begins there.
void SuspendedStacks::go_on_anew(const BranchStep& step, const StreamPosition& after) {
  const bool begins = facts_.at(step.to_ip).is(CODE_ENTRY);
  if (!begins) {
    current_.note(AnomalyKind::UNDECIDED, step, after);
    current_.state().has_unseen_stacks = true;
  }
  const std::uint64_t resume_ip = stack().top().return_ip;
  state_.switchers.insert(stack().top().function);
  if ((stack().top().open & OPEN_LEAVE) != 0) current_.end_all(CallEnd::SWITCH, after);
  auto next = current_.new_thread(current_.owner());
  const StreamPosition position = use_stack(std::move(next), after, resume_ip);
  current_.ensure_frame(step.to_ip, position);
  if (begins) return;
  stack().top().how = CallKind::RESUMED;
  stack().doubt();
}

void SuspendedStacks::go_on_with(std::size_t number, const BranchStep& step, const StreamPosition& after) {
  if (number == Candidate::kUnknown) return go_on_anew(step, after);
  if (number == Candidate::kSame) return stay(step, after);
  const std::uint64_t resume_ip = stack().top().return_ip;
  state_.switchers.insert(stack().top().function);
  if ((stack().top().open & OPEN_LEAVE) != 0) current_.end_all(CallEnd::SWITCH, after);
  const StreamPosition position = take_suspended(number, after, resume_ip);
  if (stack().top().returns_to(step.to_ip)) current_.end_call(step.to_ip, position);
}

bool SuspendedStacks::is_waiting(const SuspendedStack& one, std::uint64_t ip,
                                 const CodeLocation& code) const noexcept {
  const ThreadStack& stack = one.thread->stack;
  const bool is_same_process = one.key.first == current_.key().first &&
                               stack.owner().space == current_.owner().space &&
                               (one.key == current_.key() || current_.key().first != trace::kNoId);
  if (!is_same_process) return false;
  if (one.resume_ip != 0 && one.resume_ip == ip) return true;
  // Code that switches stacks within its function goes on there.
  const bool is_within = code.is(CODE_KNOWN) && !code.is(CODE_ENTRY) && code.function == stack.top().function;
  return is_within && (stack.top().open & OPEN_SWITCH) != 0;
}

// The stacks that wait at `ip`, the most likely one first. Stacks that switch by themselves go on with those
// that they went on with before, in turn; or else with the one that they went on after, as generators do; or
// else with the one that waits longest. A scheduler goes on with the one that waits for the shortest time,
// but for the one that has called it: others may wait for ever.
std::vector<std::size_t> SuspendedStacks::waiting_at(std::uint64_t ip) {
  if (state_.stacks.empty()) return {};
  enum Rank : std::uint8_t { CALLER, OTHER_THREAD, OTHER, RESUMER, RESUMED };
  const CodeLocation code = facts_.at(ip);
  const Thread& left = current_.thread();
  std::vector<std::pair<Rank, std::size_t>> ranked;
  for (std::size_t i = 0; i < state_.stacks.size(); ++i) {
    const SuspendedStack& one = state_.stacks[i];
    if (!is_waiting(one, ip, code)) continue;
    Rank rank = one.key == current_.key() ? OTHER : OTHER_THREAD;
    if (one.thread->stack_number == left.resumed_by) rank = left.is_scheduler ? CALLER : RESUMER;
    if (one.thread->resumed_by == left.stack_number) rank = RESUMED;
    ranked.emplace_back(rank, i);
  }
  if (left.is_scheduler) std::reverse(ranked.begin(), ranked.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> found;
  found.reserve(ranked.size());
  for (const auto& [rank, index] : ranked) found.push_back(index);
  return found;
}

// Go's recover(): the scheduler's stack goes on within a function of the stack that has called it.
bool SuspendedStacks::resume_suspended(const BranchStep& step, const StreamPosition& after) {
  const CodeLocation code = facts_.at(step.to_ip);
  const auto called = [&](const SuspendedStack& one) {
    return one.key == current_.key() && one.thread->stack_number == current_.thread().resumed_by;
  };
  const auto found = std::find_if(state_.stacks.begin(), state_.stacks.end(), called);
  if (!current_.thread().is_scheduler || found == state_.stacks.end() || code.is(CODE_ENTRY)) return false;
  ThreadStack& caller = found->thread->stack;
  const std::size_t least = caller.size() - std::min(caller.size(), kMostBelow);
  for (std::size_t i = caller.size(); i-- > least;) {
    if (caller.at(i).function != code.function) continue;
    current_.end_all(CallEnd::SWITCH, after);
    const StreamPosition position =
        take_suspended(static_cast<std::size_t>(found - state_.stacks.begin()), after, 0);
    stack().pop_to(i + 1, CallEnd::UNWIND, position, false);
    return true;
  }
  return false;
}

StreamPosition SuspendedStacks::take_suspended(std::size_t index, const StreamPosition& after,
                                               std::uint64_t resume_ip) {
  auto next = std::move(state_.stacks[index].thread);
  next->stack.set_owner(current_.owner());  // it may be that of another thread
  state_.stacks.erase(state_.stacks.begin() + static_cast<std::ptrdiff_t>(index));
  return use_stack(std::move(next), after, resume_ip);
}

StreamPosition SuspendedStacks::enter_scheduler(bool for_good, const StreamPosition& after) {
  const std::uint64_t resume_ip = stack().top().return_ip;
  if (for_good) current_.end_all(CallEnd::SWITCH, after);
  auto next = current_.new_thread(current_.owner());
  next->is_scheduler = true;
  next->begun = true;
  const StreamPosition position = use_stack(std::move(next), after, resume_ip);
  stack().begin_segment(position);
  return position;
}

// Suspends the stack of the thread, and goes on with another one. Returns the position with its counts.
StreamPosition SuspendedStacks::use_stack(std::unique_ptr<Thread> next, const StreamPosition& after,
                                          std::uint64_t resume_ip) {
  Thread& left = current_.thread();
  const StreamPosition stream = left.counts.global(after);
  left.counts.pause(after);
  left.stack.off_cpu().suspend(after);
  next->counts.resume(stream);
  if (next->stack_number == 0) next->stack_number = ++state_.numbers;
  if (left.stack_number == 0) left.stack_number = ++state_.numbers;
  next->resumed_by = left.stack_number;
  std::unique_ptr<Thread> suspended = current_.exchange(std::move(next));
  if (!suspended->stack.empty()) suspend(std::move(suspended), after, resume_ip);
  if (stack().empty()) stack().set_owner(current_.owner());
  stack().off_cpu().come_back(after);
  return current_.local(stream);
}

// Too many stacks: the one that waits longest ends.
void SuspendedStacks::suspend(std::unique_ptr<Thread> thread, const StreamPosition& after,
                              std::uint64_t resume_ip) {
  state_.stacks.push_back({current_.key(), resume_ip, std::move(thread)});
  if (state_.stacks.size() <= kMostStacks) return;
  Thread& longest = *state_.stacks.front().thread;
  longest.stack.doubt();  // it may go on
  current_.state().has_unseen_stacks = true;
  end_stack(longest, CallEnd::SWITCH, after);
  state_.stacks.erase(state_.stacks.begin());
}

std::vector<WaitingRow> SuspendedStacks::decide() {
  const WaitingRow cause = waiting_.cause();
  auto decision = waiting_.decide();
  const StreamPosition after = cause.step.position;
  if (cause.kind == WaitingRow::Kind::SWITCH) {
    const bool is_certain = decision.is_certain && !may_be_elsewhere();
    if (!is_certain && decision.number != Candidate::kUnknown)
      doubt_stacks(decision.others, cause.step, after);
    go_on_with(decision.number, cause.step, after);
  } else {
    if (!decision.is_certain) doubt_marked(decision.others, cause.step, after);
    leave_to_mark(decision.number, cause.step, after, decision.is_certain);
  }
  return std::move(decision.inputs);
}

// Any of the stacks may have gone on.
void SuspendedStacks::doubt_stacks(const std::vector<Candidate>& stacks, const BranchStep& step,
                                   const StreamPosition& after) {
  current_.note(AnomalyKind::UNDECIDED, step, after);
  for (const Candidate& one : stacks) {
    if (one.number() == Candidate::kSame) {
      stack().doubt();
    } else if (one.number() != Candidate::kUnknown) {
      state_.stacks[one.number()].thread->stack.doubt();
    }
  }
}

// longjmp() may have gone to any of the frames, and have ended those above them.
void SuspendedStacks::doubt_marked(const std::vector<Candidate>& frames, const BranchStep& step,
                                   const StreamPosition& after) {
  current_.note(AnomalyKind::UNDECIDED, step, after);
  std::size_t outermost = stack().size();
  bool may_leave = false;
  for (const Candidate& one : frames) {
    const MarkedFrame marked = MarkedFrame::of(one.number());
    if (marked.suspended == 0) {
      outermost = std::min(outermost, marked.frame + 1);
    } else {
      state_.stacks[marked.suspended - 1].thread->stack.doubt();
      may_leave = true;
    }
  }
  stack().doubt(may_leave ? 0 : outermost);
}

bool SuspendedStacks::jump_to_mark(const BranchStep& step, const StreamPosition& after) {
  std::vector<Candidate> candidates = marked_frames(step.to_ip);
  if (candidates.empty()) return false;
  if (candidates.size() == 1) {
    const std::size_t only = candidates.front().number();
    const bool is_certain = MarkedFrame::of(only).suspended == 0 || !may_be_elsewhere();
    if (!is_certain) doubt_marked(candidates, step, after);
    leave_to_mark(only, step, after, is_certain);
    return true;
  }
  BranchStep cause = step;
  cause.position = after;
  choose(std::move(candidates), cause, WaitingRow::Kind::LONGJMP);
  return true;
}

// The frames that called setjmp() there, the most likely one first. Frames of other stacks count if there is
// none, where longjmp() has gone to other stacks before, and if it would go back to the function that calls
// it: coroutines call both in one function.
std::vector<Candidate> SuspendedStacks::marked_frames(std::uint64_t ip) const {
  const ThreadStack& stack = current_.stack();
  std::vector<Candidate> candidates;
  for (const std::size_t frame : stack.marked(ip)) candidates.emplace_back(stack, frame + 1, frame);
  if (state_.stacks.empty()) return candidates;
  const std::size_t caller = stack.size() - std::min<std::size_t>(stack.size(), 2 + stack.top().tails);
  const bool is_caller = !candidates.empty() && candidates.front().number() == caller;
  if (!candidates.empty() && !is_caller && !state_.jumps_to_stacks) return candidates;
  std::vector<Candidate> others;
  for (std::size_t i = 0; i < state_.stacks.size(); ++i) {
    const SuspendedStack& one = state_.stacks[i];
    const ThreadStack& other = one.thread->stack;
    if (one.key.first != current_.key().first || other.owner().space != current_.owner().space) continue;
    for (const std::size_t frame : other.marked(ip))
      others.emplace_back(other, frame + 1, MarkedFrame{i + 1, frame}.number());
  }
  candidates.insert(is_caller ? candidates.begin() : candidates.end(), others.begin(), others.end());
  return candidates;
}

void SuspendedStacks::leave_to_mark(std::size_t number, const BranchStep& step, StreamPosition after,
                                    bool is_certain) {
  const MarkedFrame marked = MarkedFrame::of(number);
  if (marked.suspended != 0) {
    state_.jumps_to_stacks = true;
    if ((stack().top().open & OPEN_LEAVE) != 0) current_.end_all(CallEnd::SWITCH, after);
    after = take_suspended(marked.suspended - 1, after, 0);
  }
  unwind_to(marked.frame + 1, CallEnd::LONGJMP, after, is_certain);
  stack().use_mark(step.to_ip);
}

// Control goes on in the code of the frame that is then at the top, and in no stub of it.
void SuspendedStacks::unwind_to(std::size_t size, CallEnd how, const StreamPosition& after, bool exact) {
  stack().pop_to(size, how, after, exact);
  if (stack().stub() != nullptr) stack().drop_stub();
}

bool SuspendedStacks::go_below(const BranchStep& step, const StreamPosition& after, bool only_certain) {
  if (jump_to_mark(step, after)) return true;
  const CodeLocation code = facts_.at(step.to_ip);
  const bool is_pad = code.is(CODE_LANDING_PAD);
  if (only_certain && !is_pad) return false;
  const std::size_t least = stack().size() - std::min(stack().size(), kMostBelow);
  for (std::size_t i = stack().size() - 1; is_pad && i-- > least;) {
    const OpenFrame& above = stack().at(i + 1);
    if ((above.flags & FRAME_CALL) == 0 || above.how == CallKind::TAIL) continue;
    if (facts_.landing_pad_of(above.call_ip) != step.to_ip) continue;
    unwind_to(i + 1, CallEnd::UNWIND, after, true);
    return true;
  }
  if (only_certain || !code.is(CODE_KNOWN) || code.is(CODE_ENTRY)) return false;
  for (std::size_t i = stack().size() - 1; i-- > least;) {
    if (stack().at(i).function != code.function) continue;
    unwind_to(i + 1, CallEnd::UNWIND, after, false);
    return true;
  }
  return false;
}

}  // namespace ptkit::tables::calls
