// Coroutines that have stacks: one stack is parked, another one goes on.
#include <algorithm>
#include <utility>

#include "calls/stack/stack_machine.h"

namespace ptkit::calls {

// The function at the top continues at `step.to_ip`, on the stack that waits there, or on a new one.
void StackMachine::switch_stack(const Step& step, const Place& after) {
  if (jump_to_mark(step, after)) return;
  const std::vector<std::size_t> waiting = waiting_at(step.to_ip);
  const bool returns = stack().top().returns_to(step.to_ip);
  if (waiting.empty() && returns) return end_call(step.to_ip, after);
  const bool migrates = thread_->is_scheduler;  // stacks go on in other threads
  if (waiting.size() == 1 && !migrates) return go_on_with(waiting.front(), step, after, !returns);
  if (waiting.empty()) {
    if (!catch_parked(step, after)) go_on_anew(step, after);
    return;
  }
  std::vector<Candidate> candidates;
  candidates.reserve(waiting.size() + 1);
  for (const std::size_t one : waiting) {
    ThreadStack& other = parked_[one].thread->stack;
    const std::size_t chain = 1 + std::size_t{other.top().tails};
    candidates.emplace_back(other, other.size() - std::min(other.size(), chain), one);
  }
  if (migrates) candidates.push_back(Candidate::unknown(stack()));
  Step cause = step;
  cause.place = after;
  choose(std::move(candidates), cause, Input::Kind::SWITCH);
}

// On a stack that is not known.
void StackMachine::go_on_anew(const Step& step, const Place& after) {
  const std::uint64_t resume_ip = stack().top().return_ip;
  if ((stack().top().open & OPEN_LEAVE) != 0) end_all(EndHow::SWITCH, after);
  auto next = std::make_unique<Thread>(ids_, groups_, sink_, owner_);
  const Place place = use_stack(std::move(next), after, resume_ip);
  ensure_frame(step.to_ip, place);
}

void StackMachine::go_on_with(std::size_t parked, const Step& step, const Place& after, bool is_certain) {
  if (parked == Candidate::kUnknown) return go_on_anew(step, after);
  const std::uint64_t resume_ip = stack().top().return_ip;
  if ((stack().top().open & OPEN_LEAVE) != 0) end_all(EndHow::SWITCH, after);
  const Place place = take_parked(parked, after, resume_ip);
  if (!is_certain) stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  end_call(step.to_ip, place);
}

// The stacks that wait at `ip`, the most likely one first. Stacks that switch by themselves go on with those
// that they went on with before, in turn; or else with the one that they went on after, as generators do; or
// else with the one that waits longest. A scheduler goes on with the one that waits for the shortest time,
// but for the one that has called it: others may wait for ever.
std::vector<std::size_t> StackMachine::waiting_at(std::uint64_t ip) const {
  enum Rank : std::uint8_t { CALLER, OTHER, RESUMER, RESUMED };
  std::vector<std::pair<Rank, std::size_t>> ranked;
  for (std::size_t i = 0; i < parked_.size(); ++i) {
    const Parked& one = parked_[i];
    if (one.key != key_ || one.resume_ip != ip) continue;
    Rank rank = OTHER;
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
bool StackMachine::catch_parked(const Step& step, const Place& after) {
  const CodePlace code = facts_.at(step.to_ip);
  const auto called = [&](const Parked& one) {
    return one.key == key_ && one.thread->stack_number == thread_->resumed_by;
  };
  const auto found = std::find_if(parked_.begin(), parked_.end(), called);
  if (!thread_->is_scheduler || found == parked_.end() || code.is(CODE_ENTRY)) return false;
  ThreadStack& caller = found->thread->stack;
  constexpr std::size_t kMostBelow = 1U << 12U;
  const std::size_t least = caller.size() - std::min(caller.size(), kMostBelow);
  for (std::size_t i = caller.size(); i-- > least;) {
    if (caller.at(i).function != code.function) continue;
    end_all(EndHow::SWITCH, after);
    const Place place = take_parked(static_cast<std::size_t>(found - parked_.begin()), after, 0);
    stack().pop_to(i + 1, EndHow::UNWIND, place, false);
    return true;
  }
  return false;
}

Place StackMachine::take_parked(std::size_t index, const Place& after, std::uint64_t resume_ip) {
  auto next = std::move(parked_[index].thread);
  parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(index));
  return use_stack(std::move(next), after, resume_ip);
}

// The function at the top calls a scheduler, on another stack. A stack that is left for good ends.
Place StackMachine::enter_scheduler(bool for_good, const Place& after) {
  const std::uint64_t resume_ip = stack().top().return_ip;
  if (for_good) end_all(EndHow::SWITCH, after);
  auto next = std::make_unique<Thread>(ids_, groups_, sink_, owner_);
  next->is_scheduler = true;
  next->begun = true;
  const Place place = use_stack(std::move(next), after, resume_ip);
  stack().begin_segment(place);
  return place;
}

void StackMachine::end_parked(Thread& thread, EndHow how, Place end) {
  end.instructions = thread.instructions;
  end.branches = thread.branches;
  thread.stack.away().finish(end);
  while (!thread.stack.empty()) thread.stack.pop(how, end);
}

// Parks the stack of the thread, and goes on with another one. Returns the same place with its counts.
Place StackMachine::use_stack(std::unique_ptr<Thread> next, const Place& after, std::uint64_t resume_ip) {
  Place stream = after;
  stream.instructions += thread_->other_instructions;
  stream.branches += thread_->other_branches;
  thread_->instructions = after.instructions;
  thread_->branches = after.branches;
  stack().away().leave(after);
  auto& current = threads_[key_];
  next->other_instructions = stream.instructions - next->instructions;
  next->other_branches = stream.branches - next->branches;
  if (next->stack_number == 0) next->stack_number = ++stacks_;
  if (current->stack_number == 0) current->stack_number = ++stacks_;
  next->resumed_by = current->stack_number;
  std::swap(current, next);
  if (!next->stack.empty()) {
    parked_.push_back({key_, resume_ip, std::move(next)});
    if (parked_.size() > kMostParked) {
      end_parked(*parked_.front().thread, EndHow::SWITCH, after);
      parked_.erase(parked_.begin());
    }
  }
  thread_ = current.get();
  if (stack().empty()) stack().set_owner(owner_);
  stack().away().come_back(after);
  return local(stream);
}

}  // namespace ptkit::calls
