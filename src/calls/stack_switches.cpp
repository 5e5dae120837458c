// Coroutines that have stacks: one stack is parked, another one goes on.
#include <algorithm>
#include <utility>

#include "calls/stack_machine.h"

namespace ptkit::calls {

// The function at the top continues at `step.to_ip`, on the stack that waits there, or on a new one.
void StackMachine::switch_stack(const Step& step, const Place& after) {
  ThreadStack::Marked marked;
  if (stack().find_mark(step.to_ip, marked)) {
    stack().pop_to(marked.frame + 1, EndHow::LONGJMP, after, marked.is_unique);
    return;
  }
  const auto waits = [&](const Parked& one) { return one.key == key_ && one.resume_ip == step.to_ip; };
  const auto found = std::find_if(parked_.rbegin(), parked_.rend(), waits);
  const bool returns = stack().top().returns_to(step.to_ip);
  if (found == parked_.rend() && returns) return end_call(step.to_ip, after);
  const bool is_certain = !returns && std::count_if(parked_.begin(), parked_.end(), waits) <= 1;
  const std::uint64_t resume_ip = stack().top().return_ip;
  if ((stack().top().open & OPEN_LEAVE) != 0) end_all(EndHow::SWITCH, after);
  if (found == parked_.rend()) {
    auto next = std::make_unique<Thread>(ids_, groups_, sink_, owner_);
    const Place place = use_stack(std::move(next), after, resume_ip);
    ensure_frame(step.to_ip, place);
    return;
  }
  auto next = std::move(found->thread);
  parked_.erase(std::next(found).base());
  const Place place = use_stack(std::move(next), after, resume_ip);
  if (!is_certain) stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  end_call(step.to_ip, place);
}

// Parks the stack of the thread, and goes on with another one. Returns the same place with its counts.
Place StackMachine::use_stack(std::unique_ptr<Thread> next, const Place& after, std::uint64_t resume_ip) {
  Place stream = after;
  stream.instructions += thread_->other_instructions;
  stream.branches += thread_->other_branches;
  thread_->instructions = after.instructions;
  thread_->branches = after.branches;
  auto& current = threads_[key_];
  next->other_instructions = stream.instructions - next->instructions;
  next->other_branches = stream.branches - next->branches;
  std::swap(current, next);
  if (!next->stack.empty()) {
    parked_.push_back({key_, resume_ip, std::move(next)});
    if (parked_.size() > kMostParked) {
      Thread& oldest = *parked_.front().thread;
      Place end = after;
      end.instructions = oldest.instructions;
      end.branches = oldest.branches;
      while (!oldest.stack.empty()) oldest.stack.pop(EndHow::SWITCH, end);
      parked_.erase(parked_.begin());
    }
  }
  thread_ = current.get();
  stack().set_owner(owner_);
  return local(stream);
}

}  // namespace ptkit::calls
