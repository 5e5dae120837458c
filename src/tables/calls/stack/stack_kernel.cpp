// Where user code stops and goes on: system calls, signals, interrupts, code that is not traced.
#include "base/addresses.h"
#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

// A system call, or an instruction that interrupts. Without the kernel's code it is a leaf.
void StackMachine::on_leaf(const Step& step, const StreamPosition& after, CallKind how) {
  if (stack().empty()) return;
  OpenFrame frame;
  if (step.to_known()) {
    frame = frame_at(how, step.to_ip);
    frame.open = OPEN_KERNEL;
  } else {
    frame.how = how;
    frame.function = how == CallKind::SYSCALL ? kSyscallFunction : kInterruptFunction;
    frame.flags = FRAME_EXACT | FRAME_BEGIN_SEEN;
  }
  frame.call_ip = step.from_ip;
  frame.flags |= FRAME_CALL;
  frame.return_ip = facts_.end_of(step.from_ip);
  if (frame.return_ip != 0) frame.flags |= FRAME_RETURN;
  push(frame, after);
}

void StackMachine::on_async(const Step& step, const StreamPosition& after) {
  if (!step.from_known() || stack().empty()) return;
  if (!step.to_known()) {
    thread_->off = Off::ASYNC;
    thread_->async_ip = step.from_ip;
    return;
  }
  OpenFrame frame = frame_at(CallKind::INTERRUPT, step.to_ip);
  frame.call_ip = step.from_ip;
  frame.return_ip = step.from_ip;
  frame.flags |= FRAME_CALL | FRAME_RETURN;
  frame.open = OPEN_KERNEL;
  push(frame, after);
}

// A return from the kernel, or within it: ends the frames of the innermost entry that waits for it.
void StackMachine::on_kernel_return(const Step& step, const StreamPosition& after) {
  if (stack().empty() || !step.to_known() || return_from_kernel(step, after)) return;
  if (step.to_ip >= base::kKernelHalf) return return_within_kernel(step, after);
  // To user code elsewhere: all frames of the kernel end.
  std::size_t first = stack().size();
  for (std::size_t i = 0; i < stack().size() && first == stack().size(); ++i) {
    if ((stack().at(i).open & OPEN_KERNEL) != 0) first = i;
  }
  if (first == stack().size()) {
    const OpenFrame& bottom = stack().at(0);
    const bool in_kernel = (bottom.flags & FRAME_ENTRY) != 0 && bottom.entry_ip >= base::kKernelHalf;
    if (!in_kernel) return note(AnomalyKind::INTERRUPT_RETURN, step, after);
    // A thread that begins in the kernel: none of its code was interrupted.
    stack().pop_to(0, CallEnd::RETURN, after, true);
    if (thread_->executed) return end_program(step, after);
    return ensure_frame(step.to_ip, after);
  }
  const OpenFrame entry = stack().at(first);
  stack().pop_to(first, CallEnd::RETURN, after, true);
  if (thread_->executed) return end_program(step, after);
  if (stack().empty()) return ensure_frame(step.to_ip, after);
  if (end_signal(step.to_ip, entry.how == CallKind::SYSCALL, step, after)) return;
  OpenFrame frame = frame_at(CallKind::SIGNAL, step.to_ip);
  frame.call_ip = entry.return_ip;
  frame.restart_ip = entry.call_ip;
  frame.flags |= FRAME_CALL;
  push(frame, after);
}

bool StackMachine::return_from_kernel(const Step& step, const StreamPosition& after) {
  for (std::size_t i = stack().size(); i-- > 0;) {
    if ((stack().at(i).open & OPEN_KERNEL) == 0 || !stack().at(i).returns_to(step.to_ip)) continue;
    stack().pop_to(i + 1, CallEnd::RETURN, after, true);
    stack().pop(CallEnd::RETURN, after);
    return true;
  }
  return false;
}

// An IRET to kernel code that no frame waits for: within a function, to serialize, or where the handler of a
// fault has changed where code goes on (exception tables).
void StackMachine::return_within_kernel(const Step& step, const StreamPosition& after) {
  if (step.from_known() && edges_.at(step.from_ip, step.to_ip).is(EDGE_INNER)) return;
  std::size_t handler = stack().size();
  while (handler > 0 && (stack().at(handler - 1).open & OPEN_KERNEL) == 0) --handler;
  const bool interrupts = handler > 1 && stack().at(handler - 1).how == CallKind::INTERRUPT &&
                          stack().at(handler - 1).call_ip >= base::kKernelHalf;
  if (!interrupts) return note(AnomalyKind::INTERRUPT_RETURN, step, after);
  stack().pop_to(handler - 1, CallEnd::RETURN, after, true);
  const CodeLocation code = facts_.at(step.to_ip);
  if (!code.is(CODE_KNOWN) || code.function == stack().top().function || go_below(step, after, false)) return;
  note(AnomalyKind::INTERRUPT_RETURN, step, after);
  stack().top().doubt();
}

void StackMachine::on_enabled(std::uint64_t ip, const StreamPosition& at) {
  Step step;
  step.position = at;
  step.to_ip = ip;
  step.flags = flow::TO_KNOWN;
  if (ambiguous_.is_open()) return wait({step, Input::Kind::ENABLED});
  end_run(at);
  begin_run(ip, at);
  const StreamPosition position = local(at);
  stack().off_cpu().enable(position);
  follow_code(position);
  if (!stack().empty()) {
    enter_user(step, position);
  } else if (thread_->begun && facts_.at(ip).is(CODE_ENTRY)) {
    enter_from_untraced(ip, position);
  } else {
    ensure_frame(ip, position);
  }
  thread_->off = Off::NONE;
}

void StackMachine::on_disabled(const StreamPosition& position) {
  if (ambiguous_.is_open()) {
    Step step;
    step.position = position;
    return wait({step, Input::Kind::DISABLED});
  }
  end_run(position);
  stack().off_cpu().disable(position);
}

void StackMachine::on_status(std::uint64_t ip, const StreamPosition& at) {
  if (ambiguous_.is_open()) return;
  if (!run_.is_open) begin_run(ip, at);
  stack().off_cpu().enable(at);
  if (!stack().empty()) return;
  const StreamPosition position = local(at);
  follow_code(position);
  ensure_frame(ip, position);
}

// JIT code that was written anew is known from its first execution on: after the call that leads there.
void StackMachine::renew_entry(std::uint64_t ip, const StreamPosition& position) {
  OpenFrame& top = stack().top();
  const bool begins =
      (top.flags & FRAME_ENTRY) != 0 && top.entry_ip == ip && top.begin.instructions == position.instructions;
  const std::uint32_t function = begins ? facts_.function_at(ip) : top.function;
  if (function == top.function) return;
  stack().set_function(ip, function);
  top.begin.tsc = position.tsc;
  top.begin.tsc_error = position.tsc_error;
}

// The number of the outermost frame of the kernel, which was left where packets were disabled, if user code
// goes on. The number of frames if there is none.
std::size_t StackMachine::kernel_entry(std::uint64_t ip) noexcept {
  std::size_t found = stack().size();
  if (ip >= base::kKernelHalf) return found;
  for (std::size_t i = found; i-- > 0 && stack().at(i).entry_ip >= base::kKernelHalf;) {
    if ((stack().at(i).open & OPEN_KERNEL) != 0) found = i;
  }
  return found;
}

// Packets are enabled again, so user code goes on somewhere.
void StackMachine::enter_user(const Step& step, const StreamPosition& position) {
  const std::uint64_t ip = step.to_ip;
  const std::size_t kernel = in_leaf() ? stack().size() - 1 : kernel_entry(ip);
  const bool is_leaf = kernel != stack().size();
  const OpenFrame top = stack().at(is_leaf ? kernel : stack().size() - 1);
  const bool by_async = !is_leaf && thread_->off == Off::ASYNC;
  if (is_leaf) {
    stack().pop_to(kernel, CallEnd::RETURN, position, true);
    if (thread_->executed) return end_program(step, position);
    if (top.returns_to(ip)) return;
    if (stack().empty()) return ensure_frame(ip, position);  // too deep a stack has ended
  } else if (by_async) {
    if (ip == thread_->async_ip) return renew_entry(ip, position);
  } else {
    return go_on_at(step, position);
  }
  if (end_signal(ip, is_leaf, step, position)) return;
  if (is_leaf && ip == top.call_ip) return;  // the system call is repeated
  const CodeLocation code = facts_.at(ip);
  // The kernel returns from SYSENTER to an address of its own choice, which is after it.
  constexpr std::uint64_t kMostBehind = 32;
  if (is_leaf && !code.is(CODE_KNOWN) && ip - top.call_ip < kMostBehind) return;
  if (code.is(CODE_KNOWN) && !code.is(CODE_ENTRY)) {  // no handler begins there
    if (facts_.at(is_leaf ? top.call_ip : thread_->async_ip).function == code.function) return;
    return is_bottom() ? return_to_unseen(step, position) : go_on_at(step, position);
  }
  OpenFrame frame = frame_at(CallKind::SIGNAL, ip);
  frame.call_ip = is_leaf ? top.return_ip : thread_->async_ip;
  frame.restart_ip = is_leaf ? top.call_ip : 0;
  frame.flags |= FRAME_CALL;
  if (!code.is(CODE_ENTRY)) frame.flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  push(frame, position);
}

// Ends the handler of the innermost signal that interrupted the code at `ip`.
bool StackMachine::end_signal(std::uint64_t ip, bool by_syscall, const Step& step,
                              const StreamPosition& position) {
  if (!by_syscall || stack().empty()) return false;
  constexpr std::size_t kMostAbove = 16;
  std::size_t looked_at = 0;
  for (std::size_t i = stack().size(); i-- > 0 && looked_at++ < kMostAbove;) {
    OpenFrame& frame = stack().at(i);
    if (frame.how != CallKind::SIGNAL || (frame.call_ip != ip && (frame.restart_ip != ip || ip == 0)))
      continue;
    frame.call_ip = ip;    // the kernel went back to a system call that is repeated
    std::size_t last = i;  // of the functions that the handler jumped to
    while (last + 1 < stack().size() && stack().at(last + 1).tails > stack().at(last).tails) ++last;
    stack().pop_to(last + 1, CallEnd::UNWIND, position, false);
    stack().pop_chain(CallEnd::RETURN, position);
    return true;
  }
  if (!stack().in_handler() || (stack().top().open & OPEN_RESTORER) == 0) return false;
  if (facts_.at(ip).is(CODE_ENTRY)) {
    next_signal(ip, position);
    return true;
  }
  // The handler has changed where code goes on.
  stack().top().doubt();
  note(AnomalyKind::SIGNAL_RETURN, step, position);
  stack().pop_chain(CallEnd::RETURN, position);
  if (!stack().empty() && facts_.at(ip).function != stack().top().function) go_on_at(step, position);
  return true;
}

// Of signals that are delivered at once, each interrupts the handler of the next one at its entry.
void StackMachine::next_signal(std::uint64_t ip, const StreamPosition& position) {
  const OpenFrame ended = stack().chain();
  stack().pop_chain(CallEnd::RETURN, position);
  OpenFrame frame = frame_at(CallKind::SIGNAL, ip);
  frame.call_ip = ended.call_ip;
  frame.restart_ip = ended.restart_ip;
  frame.flags |= FRAME_CALL;
  push(frame, position);
}

// Code that is not traced has called the function at `ip`.
void StackMachine::enter_from_untraced(std::uint64_t ip, const StreamPosition& position) {
  OpenFrame frame = frame_at(CallKind::CALL, ip);
  frame.flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  push(frame, position);
}

// Code that is not traced has run, and goes on here.
void StackMachine::go_on_at(const Step& step, const StreamPosition& position) {
  const std::uint64_t ip = step.to_ip;
  const bool may_switch = (stack().top().open & OPEN_SWITCH) != 0;
  if (may_switch && facts_.at(ip).function != stack().top().function) return switch_stack(step, position);
  constexpr std::size_t kMostLeft = 64;
  std::size_t looked_at = 0;
  for (std::size_t i = stack().size(); i-- > 0 && looked_at++ < kMostLeft;) {
    if (!stack().at(i).returns_to(ip)) continue;
    stack().pop_to(i + 1, CallEnd::UNWIND, position, false);
    return end_call(ip, position);
  }
  const CodeLocation code = facts_.at(ip);
  if (thread_->returning != 0 && thread_->returning == position.branches) {  // by a thunk that is not traced
    stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
    stack().pop_chain(CallEnd::RETURN, position);
    if (stack().empty())
      return code.is(CODE_ENTRY) ? enter_from_untraced(ip, position) : ensure_frame(ip, position);
  }
  const OpenFrame& top = stack().top();
  const bool is_untraced =
      (top.flags & FRAME_IMPORT) != 0 || ((top.flags & FRAME_ENTRY) != 0 && !facts_.has_code(top.entry_ip));
  if (!code.is(CODE_KNOWN) && !is_untraced) return;
  if (code.is(CODE_KNOWN) && code.function == top.function) return;
  const bool begins = code.is(CODE_KNOWN) ? code.is(CODE_ENTRY) : !facts_.follows_call(ip);
  if (begins) return enter_from_untraced(ip, position);
  if (go_below(step, position, false)) return;
  note(AnomalyKind::ENTERED_ELSEWHERE, step, position);
  OpenFrame frame = frame_at(CallKind::RESUMED, code.entry);
  frame.flags = code.is(CODE_KNOWN) ? FRAME_ENTRY : 0;
  frame.doubt();
  push(frame, position);
}

}  // namespace ptkit::tables::calls
