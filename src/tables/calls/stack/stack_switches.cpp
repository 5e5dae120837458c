// Coroutines that have stacks: one stack is suspended, another one goes on.
#include <algorithm>
#include <utility>

#include "base/addresses.h"
#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

// The function at the top continues at `step.to_ip`, on the stack that waits there, or on a new one.
void StackMachine::switch_stack(const Step& step, const StreamPosition& after) {
  if (go_below(step, after, true)) return;  // unwinding loads the stack pointer, too
  const std::vector<std::size_t> waiting = waiting_at(step.to_ip);
  const bool returns = stack().top().returns_to(step.to_ip);
  const bool is_within = is_inner(step);
  const std::size_t chain = returns ? 1 + std::size_t{stack().top().tails} : 0;
  const std::size_t same = returns || is_within ? stack().size() - chain : kNone;
  if (!waiting.empty()) return choose_stack(waiting, same, step, after);
  if (same != kNone) {
    const bool may_leave = may_be_elsewhere() && switchers_.contains(stack().top().function);
    if (may_leave) doubt_stacks({Candidate(stack(), same, Candidate::kSame)}, step, after);
    return stay(step, after);
  }
  if (resume_suspended(step, after) || return_deeper(step, after)) return;
  const bool may_return =
      step.kind == flow::BranchKind::RETURN && is_bottom() && !facts_.at(step.to_ip).is(CODE_ENTRY);
  if (may_return) return return_to_unseen(step, after);
  go_on_anew(step, after);
}

// A jump within a function that may switch stacks.
bool StackMachine::is_inner(const Step& step) {
  return step.from_known() && edges_.at(step.from_ip, step.to_ip).is(EDGE_INNER);
}

// A function that is not known to switch stacks goes to an address that does not fit the top of this one.
bool StackMachine::leave_stack(const Step& step, const StreamPosition& after) {
  if (!step.from_known() || step.to_ip >= base::kKernelHalf) return false;
  const OpenFrame& top = stack().top();
  const std::uint64_t entry = (top.flags & FRAME_ENTRY) != 0 ? top.entry_ip : step.from_ip;
  const bool loads = facts_.loads_stack_pointer(entry, step.from_ip);
  const std::vector<std::size_t> waiting = waiting_at(step.to_ip);
  const std::size_t below = frame_returning_to(step.to_ip);
  const bool fits = below != kNone || is_bottom() || is_unseen() || stack().in_handler();
  if (waiting.empty() && (!loads || fits || has_function_below(facts_.at(step.to_ip)))) return false;
  if (waiting.empty()) {
    go_on_anew(step, after);
    return true;
  }
  if (!loads && fits) return false;
  const std::size_t same = below == kNone ? kNone : below - stack().at(below).tails;
  choose_stack(waiting, same, step, after);
  return true;
}

bool StackMachine::has_function_below(const CodeLocation& code) const noexcept {
  if (!code.is(CODE_KNOWN) || code.is(CODE_ENTRY)) return false;
  constexpr std::size_t kMostBelow = 1U << 12U;
  const ThreadStack& stack = thread_->stack;
  const std::size_t least = stack.size() - std::min(stack.size(), kMostBelow);
  for (std::size_t i = stack.size() - 1; i-- > least;) {
    if (stack.at(i).function == code.function) return true;
  }
  return false;
}

// `same`: frames that are left of the stack in use if that goes on; kNone: it does not.
void StackMachine::choose_stack(const std::vector<std::size_t>& waiting, std::size_t same, const Step& step,
                                const StreamPosition& after) {
  std::vector<Candidate> candidates;
  candidates.reserve(waiting.size() + 2);
  for (const std::size_t one : waiting) {
    ThreadStack& other = suspended_[one].thread->stack;
    const bool returns = other.top().returns_to(step.to_ip);
    const std::size_t chain = returns ? 1 + std::size_t{other.top().tails} : 0;
    candidates.emplace_back(other, other.size() - std::min(other.size(), chain), one);
  }
  if (same != kNone) candidates.emplace_back(stack(), same, Candidate::kSame);
  if (may_be_elsewhere()) candidates.push_back(Candidate::unknown(stack()));
  if (candidates.size() == 1) return go_on_with(waiting.front(), step, after);
  Step cause = step;
  cause.position = after;
  choose(std::move(candidates), cause, Input::Kind::SWITCH);
}

// The stack in use goes on, where it returns to or within its function.
void StackMachine::stay(const Step& step, const StreamPosition& after) {
  if (stack().top().returns_to(step.to_ip)) return end_call(step.to_ip, after);
  if (!is_inner(step)) static_cast<void>(return_deeper(step, after));
}

// On a stack that is not known. It is a new one if a function begins there.
void StackMachine::go_on_anew(const Step& step, const StreamPosition& after) {
  const bool begins = facts_.at(step.to_ip).is(CODE_ENTRY);
  if (!begins) {
    note(AnomalyKind::UNDECIDED, step, after);
    has_unseen_stacks_ = true;
  }
  const std::uint64_t resume_ip = stack().top().return_ip;
  switchers_.insert(stack().top().function);
  if ((stack().top().open & OPEN_LEAVE) != 0) end_all(CallEnd::SWITCH, after);
  auto next = std::make_unique<Thread>(ids_, groups_, sink_, owner_);
  const StreamPosition position = use_stack(std::move(next), after, resume_ip);
  ensure_frame(step.to_ip, position);
  if (begins) return;
  stack().top().how = CallKind::RESUMED;
  stack().doubt();
}

void StackMachine::go_on_with(std::size_t suspended, const Step& step, const StreamPosition& after) {
  if (suspended == Candidate::kUnknown) return go_on_anew(step, after);
  if (suspended == Candidate::kSame) return stay(step, after);
  const std::uint64_t resume_ip = stack().top().return_ip;
  switchers_.insert(stack().top().function);
  if ((stack().top().open & OPEN_LEAVE) != 0) end_all(CallEnd::SWITCH, after);
  const StreamPosition position = take_suspended(suspended, after, resume_ip);
  if (stack().top().returns_to(step.to_ip)) end_call(step.to_ip, position);
}

bool StackMachine::is_waiting(const SuspendedStack& one, std::uint64_t ip,
                              const CodeLocation& code) const noexcept {
  const ThreadStack& stack = one.thread->stack;
  const bool is_same_process = one.key.first == key_.first && stack.owner().space == owner_.space &&
                               (one.key == key_ || key_.first != trace::kNoId);
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
std::vector<std::size_t> StackMachine::waiting_at(std::uint64_t ip) {
  if (suspended_.empty()) return {};
  enum Rank : std::uint8_t { CALLER, OTHER_THREAD, OTHER, RESUMER, RESUMED };
  const CodeLocation code = facts_.at(ip);
  std::vector<std::pair<Rank, std::size_t>> ranked;
  for (std::size_t i = 0; i < suspended_.size(); ++i) {
    const SuspendedStack& one = suspended_[i];
    if (!is_waiting(one, ip, code)) continue;
    Rank rank = one.key == key_ ? OTHER : OTHER_THREAD;
    if (one.thread->stack_number == thread_->resumed_by) rank = thread_->is_scheduler ? CALLER : RESUMER;
    if (one.thread->resumed_by == thread_->stack_number) rank = RESUMED;
    ranked.emplace_back(rank, i);
  }
  if (thread_->is_scheduler) std::reverse(ranked.begin(), ranked.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::size_t> found;
  found.reserve(ranked.size());
  for (const auto& [rank, index] : ranked) found.push_back(index);
  return found;
}

// Go's recover(): the scheduler's stack goes on within a function of the stack that has called it.
bool StackMachine::resume_suspended(const Step& step, const StreamPosition& after) {
  const CodeLocation code = facts_.at(step.to_ip);
  const auto called = [&](const SuspendedStack& one) {
    return one.key == key_ && one.thread->stack_number == thread_->resumed_by;
  };
  const auto found = std::find_if(suspended_.begin(), suspended_.end(), called);
  if (!thread_->is_scheduler || found == suspended_.end() || code.is(CODE_ENTRY)) return false;
  ThreadStack& caller = found->thread->stack;
  constexpr std::size_t kMostBelow = 1U << 12U;
  const std::size_t least = caller.size() - std::min(caller.size(), kMostBelow);
  for (std::size_t i = caller.size(); i-- > least;) {
    if (caller.at(i).function != code.function) continue;
    end_all(CallEnd::SWITCH, after);
    const StreamPosition position =
        take_suspended(static_cast<std::size_t>(found - suspended_.begin()), after, 0);
    stack().pop_to(i + 1, CallEnd::UNWIND, position, false);
    return true;
  }
  return false;
}

StreamPosition StackMachine::take_suspended(std::size_t index, const StreamPosition& after,
                                            std::uint64_t resume_ip) {
  auto next = std::move(suspended_[index].thread);
  next->stack.set_owner(owner_);  // it may be that of another thread
  suspended_.erase(suspended_.begin() + static_cast<std::ptrdiff_t>(index));
  return use_stack(std::move(next), after, resume_ip);
}

// The function at the top calls a scheduler, on another stack. A stack that is left for good ends.
StreamPosition StackMachine::enter_scheduler(bool for_good, const StreamPosition& after) {
  const std::uint64_t resume_ip = stack().top().return_ip;
  if (for_good) end_all(CallEnd::SWITCH, after);
  auto next = std::make_unique<Thread>(ids_, groups_, sink_, owner_);
  next->is_scheduler = true;
  next->begun = true;
  const StreamPosition position = use_stack(std::move(next), after, resume_ip);
  stack().begin_segment(position);
  return position;
}

void StackMachine::end_suspended(Thread& thread, CallEnd how, StreamPosition end) {
  end.instructions = thread.instructions;
  end.branches = thread.branches;
  thread.stack.off_cpu().finish(end);
  while (!thread.stack.empty()) thread.stack.pop(how, end);
}

// Suspends the stack of the thread, and goes on with another one. Returns the position with its counts.
StreamPosition StackMachine::use_stack(std::unique_ptr<Thread> next, const StreamPosition& after,
                                       std::uint64_t resume_ip) {
  StreamPosition stream = after;
  stream.instructions += thread_->other_instructions;
  stream.branches += thread_->other_branches;
  thread_->instructions = after.instructions;
  thread_->branches = after.branches;
  stack().off_cpu().leave(after);
  auto& current = threads_[key_];
  next->other_instructions = stream.instructions - next->instructions;
  next->other_branches = stream.branches - next->branches;
  if (next->stack_number == 0) next->stack_number = ++stacks_;
  if (current->stack_number == 0) current->stack_number = ++stacks_;
  next->resumed_by = current->stack_number;
  std::swap(current, next);
  if (!next->stack.empty()) {
    suspended_.push_back({key_, resume_ip, std::move(next)});
    if (suspended_.size() > kMostSuspended) {
      suspended_.front().thread->stack.doubt();  // it may go on
      has_unseen_stacks_ = true;
      end_suspended(*suspended_.front().thread, CallEnd::SWITCH, after);
      suspended_.erase(suspended_.begin());
    }
  }
  thread_ = current.get();
  if (stack().empty()) stack().set_owner(owner_);
  stack().off_cpu().come_back(after);
  return local(stream);
}

}  // namespace ptkit::tables::calls
