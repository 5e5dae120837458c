// Where user code stops and goes on: system calls, signals, interrupts, code that is not traced.
#include "calls/stack_machine.h"

namespace ptkit::calls {

// A system call, or an instruction that interrupts. Without the kernel's code it is a leaf.
void StackMachine::on_leaf(const Step& step, const Place& after, How how) {
  if (stack().empty()) return;
  OpenFrame frame;
  if (step.to_known()) {
    frame = frame_at(how, step.to_ip);
    frame.open = OPEN_KERNEL;
  } else {
    frame.how = how;
    frame.function = how == How::SYSCALL ? kSyscallFunction : kInterruptFunction;
    frame.flags = FRAME_EXACT | FRAME_BEGIN_SEEN;
  }
  frame.call_ip = step.from_ip;
  frame.flags |= FRAME_CALL;
  frame.return_ip = facts_.end_of(step.from_ip);
  if (frame.return_ip != 0) frame.flags |= FRAME_RETURN;
  push(frame, after);
}

void StackMachine::on_async(const Step& step, const Place& after) {
  if (!step.from_known() || stack().empty()) return;
  if (!step.to_known()) {
    thread_->off = Off::ASYNC;
    thread_->async_ip = step.from_ip;
    return;
  }
  OpenFrame frame = frame_at(How::INTERRUPT, step.to_ip);
  frame.call_ip = step.from_ip;
  frame.return_ip = step.from_ip;
  frame.flags |= FRAME_CALL | FRAME_RETURN;
  frame.open = OPEN_KERNEL;
  push(frame, after);
}

// A return from the kernel, or within it: ends the frames of the innermost entry that waits for it.
void StackMachine::on_kernel_return(const Step& step, const Place& after) {
  if (stack().empty() || !step.to_known()) return;
  for (std::size_t i = stack().size(); i-- > 0;) {
    if ((stack().at(i).open & OPEN_KERNEL) == 0 || !stack().at(i).returns_to(step.to_ip)) continue;
    stack().pop_to(i + 1, EndHow::RETURN, after, true);
    return stack().pop(EndHow::RETURN, after);
  }
  constexpr unsigned kHighestBit = 63;
  if (step.to_ip >> kHighestBit != 0) return note(AnomalyKind::INTERRUPT_RETURN, step, after);
  // To user code elsewhere: all frames of the kernel end.
  std::size_t first = stack().size();
  for (std::size_t i = 0; i < stack().size() && first == stack().size(); ++i) {
    if ((stack().at(i).open & OPEN_KERNEL) != 0) first = i;
  }
  if (first == stack().size()) return note(AnomalyKind::INTERRUPT_RETURN, step, after);
  const OpenFrame entry = stack().at(first);
  stack().pop_to(first, EndHow::RETURN, after, true);
  if (stack().empty()) return ensure_frame(step.to_ip, after);
  if (end_signal(step.to_ip, entry.how == How::SYSCALL, step, after)) return;
  OpenFrame frame = frame_at(How::SIGNAL, step.to_ip);
  frame.call_ip = entry.return_ip;
  frame.restart_ip = entry.call_ip;
  frame.flags |= FRAME_CALL;
  push(frame, after);
}

void StackMachine::on_enabled(std::uint64_t ip, const Place& at) {
  const Place place = local(at);
  follow_code(place);
  Step step;
  step.to_ip = ip;
  step.flags = flow::TO_KNOWN;
  if (stack().empty()) {
    ensure_frame(ip, place);
  } else {
    enter_user(step, place);
  }
  thread_->off = Off::NONE;
}

void StackMachine::on_status(std::uint64_t ip, const Place& at) {
  if (!stack().empty()) return;
  const Place place = local(at);
  follow_code(place);
  ensure_frame(ip, place);
}

// Packets are enabled again, so user code goes on somewhere.
void StackMachine::enter_user(const Step& step, const Place& place) {
  const std::uint64_t ip = step.to_ip;
  const OpenFrame top = stack().top();
  const bool is_leaf = in_leaf();
  const bool by_async = !is_leaf && thread_->off == Off::ASYNC;
  if (is_leaf) {
    stack().pop(EndHow::RETURN, place);
    if (top.returns_to(ip)) return;
  } else if (by_async) {
    if (ip == thread_->async_ip) return;
  } else {
    return go_on_at(step, place);
  }
  if (end_signal(ip, is_leaf, step, place)) return;
  if (is_leaf && ip == top.call_ip) return;  // the system call is repeated
  const CodePlace code = facts_.at(ip);
  if (is_leaf && !code.is(CODE_ENTRY) && facts_.at(top.call_ip).function == code.function) return;
  OpenFrame frame = frame_at(How::SIGNAL, ip);
  frame.call_ip = is_leaf ? top.return_ip : thread_->async_ip;
  frame.restart_ip = is_leaf ? top.call_ip : 0;
  frame.flags |= FRAME_CALL;
  if (!code.is(CODE_ENTRY)) frame.flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  push(frame, place);
}

// Ends the handler of the innermost signal that interrupted the code at `ip`.
bool StackMachine::end_signal(std::uint64_t ip, bool by_syscall, const Step& step, const Place& place) {
  if (!by_syscall || stack().empty()) return false;
  constexpr std::size_t kMostAbove = 16;
  std::size_t looked_at = 0;
  for (std::size_t i = stack().size(); i-- > 0 && looked_at++ < kMostAbove;) {
    const OpenFrame& frame = stack().at(i);
    if (frame.how != How::SIGNAL || (frame.call_ip != ip && (frame.restart_ip != ip || ip == 0))) continue;
    stack().pop_to(i + 1, EndHow::UNWIND, place, false);
    stack().pop(EndHow::RETURN, place);
    return true;
  }
  if (stack().top().how != How::SIGNAL || (stack().top().open & OPEN_RESTORER) == 0) return false;
  // The handler has changed where code goes on.
  stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  note(AnomalyKind::SIGNAL_RETURN, step, place);
  stack().pop(EndHow::RETURN, place);
  if (!stack().empty() && facts_.at(ip).function != stack().top().function) go_on_at(step, place);
  return true;
}

// Code that is not traced has run, and goes on here.
void StackMachine::go_on_at(const Step& step, const Place& place) {
  const std::uint64_t ip = step.to_ip;
  constexpr std::size_t kMostLeft = 64;
  std::size_t looked_at = 0;
  for (std::size_t i = stack().size(); i-- > 0 && looked_at++ < kMostLeft;) {
    if (!stack().at(i).returns_to(ip)) continue;
    stack().pop_to(i + 1, EndHow::UNWIND, place, false);
    return end_call(ip, place);
  }
  const CodePlace code = facts_.at(ip);
  if (!code.is(CODE_KNOWN) || code.function == stack().top().function) return;
  if (code.is(CODE_ENTRY)) {
    OpenFrame frame = frame_at(How::CALL, ip);
    frame.flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
    return push(frame, place);
  }
  if (go_below(step, place, false)) return;
  note(AnomalyKind::ENTERED_ELSEWHERE, step, place);
  OpenFrame frame = frame_at(How::RESUMED, code.entry);
  frame.flags = FRAME_ENTRY;
  push(frame, place);
}

}  // namespace ptkit::calls
