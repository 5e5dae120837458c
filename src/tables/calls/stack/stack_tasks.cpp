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
  const StreamPosition& left = thread_->left;
  if (moves_ == nullptr || !left.time_known || stack().empty()) return;
  if (stack().top().entry_ip < base::kKernelHalf) return;
  if (!moves_->was_elsewhere(key_.second, left.tsc + left.tsc_error / 2, until)) return;
  end_all(CallEnd::SWITCH, left);
  thread_->executed.reset();
  thread_->begun = false;
}

// `step` returns from the function that switches, on the stack of `owner`.
void StackMachine::on_task_switch(const Step& step, const Owner& owner) {
  decide_open();
  if (const std::size_t size = above_scheduler(); size > 1) {
    const OpenFrame& caller = stack().at(size - 2);
    const bool ends = !left_ && (caller.open & OPEN_TASK_END) != 0;
    if (ends) end_all(CallEnd::END, local(step.position));
    if (ends) thread_->begun = false;
  }
  if (inlines_ != nullptr) run_to_branch(step);
  on_owner(owner, step.position);
  const StreamPosition position = local(step.position);
  stack().off_cpu().enable(position);
  follow_code(position);
  const StreamPosition after = after_branch(position);
  if (!step.to_known()) return on_return(step, after);
  if (facts_.at(step.to_ip).is(CODE_ENTRY)) {  // ret_from_fork(): a thread begins
    end_all(CallEnd::END, position);
    thread_->begun = false;
  }
  if (stack().empty()) return ensure_frame(step.to_ip, after);
  if (stack().top().returns_to(step.to_ip)) return end_call(step.to_ip, after);
  const std::size_t size = above_scheduler();
  const bool was_untraced = size != 0 && stack().at(size - 1).function == facts_.at(step.to_ip).function;
  if (!was_untraced) return on_return(step, after);
  stack().pop_to(size, CallEnd::RETURN, position, false);  // it was left while packets were disabled
}

// What is above the scheduler has returned while packets were disabled, and others have been called.
void StackMachine::on_task_enabled(std::uint64_t ip, const StreamPosition& at, const Owner& owner) {
  decide_open();
  end_run(at);
  begin_run(ip, at);
  on_owner(owner, at);
  const StreamPosition position = local(at);
  stack().off_cpu().enable(position);
  follow_code(position);
  thread_->off = Off::NONE;
  if (stack().empty()) return ensure_frame(ip, position);
  if (const std::size_t size = above_scheduler(); size != 0)
    stack().pop_to(size, CallEnd::RETURN, position, false);
  const CodeLocation code = facts_.at(ip);
  OpenFrame frame = frame_at(CallKind::RESUMED, code.entry);
  frame.flags = code.is(CODE_KNOWN) ? FRAME_ENTRY : 0;
  push(frame, position);
}

// The kernel returns to the program that exec() has begun.
void StackMachine::end_program(const Step& step, const StreamPosition& after) {
  stack().set_owner(*thread_->executed);
  end_all(CallEnd::END, after);
  thread_->executed.reset();
  stack().set_owner(owner_);
  thread_->begun = false;
  ensure_frame(step.to_ip, after);
}

}  // namespace ptkit::tables::calls
