// The kernel's switches between threads: each thread goes on with the stack that it was left with.
#include "base/addresses.h"
#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

namespace {

constexpr std::size_t kMostAbove = 64;  // frames above the scheduler

}  // namespace

// How many frames are left without those above the scheduler; 0: it is not open.
std::size_t StackMachine::above_scheduler() const noexcept {
  const ThreadStack& stack = thread_->stack;
  for (std::size_t i = stack.size(); i > 0 && stack.size() - i < kMostAbove; --i) {
    if ((stack.at(i - 1).open & OPEN_SCHEDULER) != 0) return i;
  }
  return 0;
}

std::uint64_t StackMachine::scheduler() const noexcept {
  const std::size_t size = above_scheduler();
  return size == 0 ? 0 : thread_->stack.at(size - 1).entry_ip;
}

// The thread has left the kernel in the stream of another processor: what was left here does not go on.
void StackMachine::end_moved(std::uint64_t until) {
  const Place& left = thread_->left;
  if (moves_ == nullptr || !left.time_known || stack().empty()) return;
  if (stack().top().entry_ip < base::kKernelHalf) return;
  if (!moves_->was_elsewhere(key_.second, left.tsc + left.tsc_error / 2, until)) return;
  end_all(EndHow::SWITCH, left);
  thread_->executed.reset();
  thread_->begun = false;
}

// `step` returns from the function that switches, on the stack of `owner`.
void StackMachine::on_task_switch(const Step& step, const Owner& owner) {
  decide_open();
  if (const std::size_t size = above_scheduler(); size > 1) {
    const OpenFrame& caller = stack().at(size - 2);
    const bool ends = !left_ && (caller.open & OPEN_TASK_END) != 0;
    if (ends) end_all(EndHow::END, local(step.place));
    if (ends) thread_->begun = false;
  }
  if (inlines_ != nullptr) run_to_branch(step);
  on_owner(owner, step.place);
  const Place place = local(step.place);
  stack().away().enable(place);
  follow_code(place);
  const Place after = after_branch(place);
  if (!step.to_known()) return on_return(step, after);
  if (facts_.at(step.to_ip).is(CODE_ENTRY)) {  // ret_from_fork(): a thread begins
    end_all(EndHow::END, place);
    thread_->begun = false;
  }
  if (stack().empty()) return ensure_frame(step.to_ip, after);
  if (stack().top().returns_to(step.to_ip)) return end_call(step.to_ip, after);
  const std::size_t size = above_scheduler();
  const bool was_untraced = size != 0 && stack().at(size - 1).function == facts_.at(step.to_ip).function;
  if (!was_untraced) return on_return(step, after);
  stack().pop_to(size, EndHow::RETURN, place, false);  // it was left while packets were disabled
}

// What is above the scheduler has returned while packets were disabled, and others have been called.
void StackMachine::on_task_enabled(std::uint64_t ip, const Place& at, const Owner& owner) {
  decide_open();
  end_run(at);
  begin_run(ip, at);
  on_owner(owner, at);
  const Place place = local(at);
  stack().away().enable(place);
  follow_code(place);
  thread_->off = Off::NONE;
  if (stack().empty()) return ensure_frame(ip, place);
  if (const std::size_t size = above_scheduler(); size != 0)
    stack().pop_to(size, EndHow::RETURN, place, false);
  const CodePlace code = facts_.at(ip);
  OpenFrame frame = frame_at(How::RESUMED, code.entry);
  frame.flags = code.is(CODE_KNOWN) ? FRAME_ENTRY : 0;
  push(frame, place);
}

// The kernel returns to the program that exec() has begun.
void StackMachine::end_program(const Step& step, const Place& after) {
  stack().set_owner(*thread_->executed);
  end_all(EndHow::END, after);
  thread_->executed.reset();
  stack().set_owner(owner_);
  thread_->begun = false;
  ensure_frame(step.to_ip, after);
}

}  // namespace ptkit::tables::calls
