#include "tables/calls/stack/far_transfers.h"

#include <algorithm>

#include "base/addresses.h"

namespace ptkit::tables::calls {

void FarTransfers::on_leaf(const BranchStep& step, const StreamPosition& after, CallKind how) {
  if (stack().empty()) return;
  OpenFrame frame;
  if (step.to_known()) {
    frame = current_.frame_at(how, step.to_ip);
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
  current_.push(frame, after);
}

void FarTransfers::on_async(const BranchStep& step, const StreamPosition& after) {
  if (!step.from_known() || stack().empty()) return;
  if (!step.to_known()) {
    current_.thread().off = Thread::Off::ASYNC;
    current_.thread().async_ip = step.from_ip;
    return;
  }
  OpenFrame frame = current_.frame_at(CallKind::INTERRUPT, step.to_ip);
  frame.call_ip = step.from_ip;
  frame.return_ip = step.from_ip;
  frame.flags |= FRAME_CALL | FRAME_RETURN;
  frame.open = OPEN_KERNEL;
  current_.push(frame, after);
}

void FarTransfers::on_abort(const BranchStep& step, const StreamPosition& after) {
  while (!stack().empty() && (stack().top().flags & FRAME_IN_TX) != 0) stack().pop(CallEnd::ABORT, after);
  if (step.to_known()) current_.ensure_frame(step.to_ip, after);
}

void FarTransfers::on_kernel_return(const BranchStep& step, const StreamPosition& after) {
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
    if (!in_kernel) return current_.note(AnomalyKind::INTERRUPT_RETURN, step, after);
    // A thread that begins in the kernel: none of its code was interrupted.
    stack().pop_to(0, CallEnd::RETURN, after, true);
    if (current_.thread().executed) return end_program(step, after);
    return current_.ensure_frame(step.to_ip, after);
  }
  const OpenFrame entry = stack().at(first);
  stack().pop_to(first, CallEnd::RETURN, after, true);
  if (current_.thread().executed) return end_program(step, after);
  if (stack().empty()) return current_.ensure_frame(step.to_ip, after);
  if (end_signal(step.to_ip, entry.how == CallKind::SYSCALL, step, after)) return;
  OpenFrame frame = signal_frame(step.to_ip, entry.return_ip, entry.call_ip);
  current_.push(frame, after);
}

bool FarTransfers::return_from_kernel(const BranchStep& step, const StreamPosition& after) {
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
void FarTransfers::return_within_kernel(const BranchStep& step, const StreamPosition& after) {
  if (step.from_known() && edges_.at(step.from_ip, step.to_ip).is(EDGE_INNER)) return;
  std::size_t handler = stack().size();
  while (handler > 0 && (stack().at(handler - 1).open & OPEN_KERNEL) == 0) --handler;
  const bool interrupts = handler > 1 && stack().at(handler - 1).how == CallKind::INTERRUPT &&
                          stack().at(handler - 1).call_ip >= base::kKernelHalf;
  if (!interrupts) return current_.note(AnomalyKind::INTERRUPT_RETURN, step, after);
  stack().pop_to(handler - 1, CallEnd::RETURN, after, true);
  const CodeLocation code = facts_.at(step.to_ip);
  if (!code.is(CODE_KNOWN) || code.function == stack().top().function ||
      suspended_.go_below(step, after, false))
    return;
  current_.note(AnomalyKind::INTERRUPT_RETURN, step, after);
  stack().top().doubt();
}

// The kernel returns to the program that exec() has begun.
void FarTransfers::end_program(const BranchStep& step, const StreamPosition& after) {
  Thread& thread = current_.thread();
  stack().set_owner(*thread.executed);
  current_.end_thread(after);
  thread.executed.reset();
  stack().set_owner(current_.owner());
  current_.ensure_frame(step.to_ip, after);
}

void FarTransfers::on_far_call(const BranchStep& step, const StreamPosition& after) {
  const bool calls = step.to_known() && step.from_known() && facts_.is_far_call(step.from_ip);
  if (calls) return near_.on_call(step, after);
  on_leaf(step, after, CallKind::INTERRUPT);
}

void FarTransfers::on_far_return(const BranchStep& step, const StreamPosition& after) {
  const auto in_kernel = [](std::uint64_t ip) { return ip >= base::kKernelHalf; };
  const bool leaves_kernel =
      !step.from_known() || !step.to_known() || in_kernel(step.from_ip) != in_kernel(step.to_ip);
  const bool is_interrupt = step.kind == flow::BranchKind::IRET && in_kernel(step.from_ip);
  if (leaves_kernel || is_interrupt) return on_kernel_return(step, after);
  if (stack().empty() || return_from_kernel(step, after)) return;
  on_far_jump(step, after);
}

void FarTransfers::on_far_jump(const BranchStep& step, const StreamPosition& after) {
  if (stack().empty() || !step.to_known()) return;
  near_.enter_stub_as_function(after);
  if (stack().top().returns_to(step.to_ip)) return current_.end_call(step.to_ip, after);
  if (go_back_far(step, after)) return;
  near_.on_jump(step, after, true);
}

// Goes on after a far transfer, or elsewhere in the function that made it: the frame that it entered has
// ended.
bool FarTransfers::go_back_far(const BranchStep& step, const StreamPosition& after) {
  constexpr std::size_t kMostAbove = 64;
  const CodeLocation code = facts_.at(step.to_ip);
  const std::size_t least = stack().size() - std::min(stack().size(), kMostAbove);
  for (std::size_t i = stack().size(); i-- > std::max<std::size_t>(least, 1);) {
    const OpenFrame& entered = stack().at(i);
    if ((entered.open & OPEN_FAR) == 0) continue;
    const bool is_after = facts_.end_of(entered.call_ip) == step.to_ip;
    const bool is_within =
        code.is(CODE_KNOWN) && !code.is(CODE_ENTRY) && stack().at(i - 1).function == code.function;
    if (!is_after && !is_within) continue;
    const bool is_top = i + 1 == stack().size();
    stack().pop_to(i + 1, CallEnd::UNWIND, after, false);
    stack().pop_to(i, CallEnd::RETURN, after, is_top);
    return true;
  }
  return false;
}

void FarTransfers::on_enabled(const BranchStep& step, const StreamPosition& position) {
  if (!stack().empty()) {
    enter_user(step, position);
  } else if (current_.thread().begun && facts_.at(step.to_ip).is(CODE_ENTRY)) {
    enter_from_untraced(step.to_ip, position);
  } else {
    current_.ensure_frame(step.to_ip, position);
  }
  current_.thread().off = Thread::Off::NONE;
}

// JIT code that was written anew is known from its first execution on: after the call that leads there.
void FarTransfers::renew_entry(std::uint64_t ip, const StreamPosition& position) {
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
std::size_t FarTransfers::kernel_entry(std::uint64_t ip) noexcept {
  std::size_t found = stack().size();
  if (ip >= base::kKernelHalf) return found;
  for (std::size_t i = found; i-- > 0 && stack().at(i).entry_ip >= base::kKernelHalf;) {
    if ((stack().at(i).open & OPEN_KERNEL) != 0) found = i;
  }
  return found;
}

void FarTransfers::enter_user(const BranchStep& step, const StreamPosition& position) {
  const std::uint64_t ip = step.to_ip;
  const std::size_t kernel = current_.in_leaf() ? stack().size() - 1 : kernel_entry(ip);
  if (kernel != stack().size()) return return_from_leaf(kernel, step, position);
  const Thread& thread = current_.thread();
  if (thread.off != Thread::Off::ASYNC) return go_on_at(step, position);
  if (ip == thread.async_ip) return renew_entry(ip, position);
  enter_handler({.ip = thread.async_ip, .next_ip = thread.async_ip}, step, position);
}

// Ends the frame with the number `leaf`, of a system call or an interrupt, and those above it.
void FarTransfers::return_from_leaf(std::size_t leaf, const BranchStep& step,
                                    const StreamPosition& position) {
  const std::uint64_t ip = step.to_ip;
  const OpenFrame ended = stack().at(leaf);
  stack().pop_to(leaf, CallEnd::RETURN, position, true);
  if (current_.thread().executed) return end_program(step, position);
  if (ended.returns_to(ip)) return;
  if (stack().empty()) return current_.ensure_frame(ip, position);  // too deep a stack has ended
  if (end_signal(ip, true, step, position)) return;
  if (ip == ended.call_ip) return;  // the system call is repeated
  // The kernel returns from SYSENTER to an address of its own choice, which is after it.
  constexpr std::uint64_t kMostAfter = 32;
  if (!facts_.at(ip).is(CODE_KNOWN) && ip - ended.call_ip < kMostAfter) return;
  enter_handler({.ip = ended.call_ip, .next_ip = ended.return_ip, .restart_ip = ended.call_ip}, step,
                position);
}

// A signal is delivered, unless control goes on within a function.
void FarTransfers::enter_handler(const Interrupted& interrupted, const BranchStep& step,
                                 const StreamPosition& position) {
  const CodeLocation code = facts_.at(step.to_ip);
  if (code.is(CODE_KNOWN) && !code.is(CODE_ENTRY)) {
    if (facts_.at(interrupted.ip).function == code.function) return;
    return current_.is_bottom() ? current_.return_to_unseen(step, position) : go_on_at(step, position);
  }
  OpenFrame frame = signal_frame(step.to_ip, interrupted.next_ip, interrupted.restart_ip);
  if (!code.is(CODE_ENTRY)) frame.flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  current_.push(frame, position);
}

// The frame of a handler.
OpenFrame FarTransfers::signal_frame(std::uint64_t ip, std::uint64_t next_ip, std::uint64_t restart_ip) {
  OpenFrame frame = current_.frame_at(CallKind::SIGNAL, ip);
  frame.call_ip = next_ip;
  frame.restart_ip = restart_ip;
  frame.flags |= FRAME_CALL;
  return frame;
}

// Ends the handler of the innermost signal that interrupted the code at `ip`.
bool FarTransfers::end_signal(std::uint64_t ip, bool by_syscall, const BranchStep& step,
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
  current_.note(AnomalyKind::SIGNAL_RETURN, step, position);
  stack().pop_chain(CallEnd::RETURN, position);
  if (!stack().empty() && facts_.at(ip).function != stack().top().function) go_on_at(step, position);
  return true;
}

// Of signals that are delivered at once, each interrupts the handler of the next one at its entry.
void FarTransfers::next_signal(std::uint64_t ip, const StreamPosition& position) {
  const OpenFrame ended = stack().chain();
  stack().pop_chain(CallEnd::RETURN, position);
  OpenFrame frame = signal_frame(ip, ended.call_ip, ended.restart_ip);
  current_.push(frame, position);
}

// Code that is not traced has called the function at `ip`.
void FarTransfers::enter_from_untraced(std::uint64_t ip, const StreamPosition& position) {
  OpenFrame frame = current_.frame_at(CallKind::CALL, ip);
  frame.flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  current_.push(frame, position);
}

// Code that is not traced has run, and goes on.
void FarTransfers::go_on_at(const BranchStep& step, const StreamPosition& position) {
  const std::uint64_t ip = step.to_ip;
  const bool may_switch = (stack().top().open & OPEN_SWITCH) != 0;
  if (may_switch && facts_.at(ip).function != stack().top().function)
    return suspended_.switch_stack(step, position);
  constexpr std::size_t kMostLeft = 64;
  std::size_t looked_at = 0;
  for (std::size_t i = stack().size(); i-- > 0 && looked_at++ < kMostLeft;) {
    if (!stack().at(i).returns_to(ip)) continue;
    stack().pop_to(i + 1, CallEnd::UNWIND, position, false);
    return current_.end_call(ip, position);
  }
  const CodeLocation code = facts_.at(ip);
  const std::uint64_t returning = current_.thread().returning;
  if (returning != 0 && returning == position.branches) {  // by a thunk that is not traced
    stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
    stack().pop_chain(CallEnd::RETURN, position);
    if (stack().empty())
      return code.is(CODE_ENTRY) ? enter_from_untraced(ip, position) : current_.ensure_frame(ip, position);
  }
  const OpenFrame& top = stack().top();
  const bool is_untraced =
      (top.flags & FRAME_IMPORT) != 0 || ((top.flags & FRAME_ENTRY) != 0 && !facts_.has_code(top.entry_ip));
  if (!code.is(CODE_KNOWN) && !is_untraced) return;
  if (code.is(CODE_KNOWN) && code.function == top.function) return;
  const bool begins = code.is(CODE_KNOWN) ? code.is(CODE_ENTRY) : !facts_.follows_call(ip);
  if (begins) return enter_from_untraced(ip, position);
  if (suspended_.go_below(step, position, false)) return;
  current_.note(AnomalyKind::ENTERED_ELSEWHERE, step, position);
  OpenFrame frame = current_.frame_within(CallKind::RESUMED, code);
  frame.doubt();
  current_.push(frame, position);
}

}  // namespace ptkit::tables::calls
