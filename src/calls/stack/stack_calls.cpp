// Calls and jumps: how frames of user code begin.
#include "base/addresses.h"
#include "calls/stack/stack_machine.h"

namespace ptkit::calls {

// What is known of a frame by its function.
std::uint16_t StackMachine::open_flags(const EdgeFacts& edge) noexcept {
  unsigned open = 0;
  if (edge.is(CODE_STUB)) open |= OPEN_STUB;
  if (edge.is(CODE_SETJMP)) open |= OPEN_SETJMP;
  if (edge.is(CODE_RESOLVER)) open |= OPEN_RESOLVER;
  if (edge.is(CODE_SWITCH)) open |= OPEN_SWITCH;
  if (edge.is(CODE_LEAVE)) open |= OPEN_LEAVE;
  if (edge.is(CODE_PARK)) open |= OPEN_PARK;
  return static_cast<std::uint16_t>(open | kernel_open_flags(edge.flags));
}

// The same of the kernel's functions.
std::uint16_t StackMachine::kernel_open_flags(std::uint32_t code_flags) noexcept {
  unsigned open = 0;
  if ((code_flags & CODE_TASK_SWITCH) != 0) open |= OPEN_TASK_SWITCH;
  if ((code_flags & CODE_SCHEDULER) != 0) open |= OPEN_SCHEDULER;
  if ((code_flags & CODE_TASK_END) != 0) open |= OPEN_TASK_END;
  return static_cast<std::uint16_t>(open);
}

// Of a call within its function, not to its begin. The kernel fills the return stack buffer by calls over
// INT3, or over a loop, and drops their return addresses (FILL_RETURN_BUFFER).
std::uint16_t StackMachine::inner_open_flags(const EdgeFacts& edge) noexcept {
  constexpr std::uint64_t kMostBytesOver = 8;
  const bool fills = edge.from >= base::kKernelHalf && edge.to - edge.next <= kMostBytesOver;
  return static_cast<std::uint16_t>(fills ? OPEN_INNER | OPEN_STUFFING : OPEN_INNER);
}

void StackMachine::on_call(const Step& step, const Place& after) {
  if (stack().empty()) return;
  Place begin = after;
  OpenFrame frame;
  frame.how = How::CALL;
  frame.flags = FRAME_EXACT | FRAME_BEGIN_SEEN | FRAME_CALL;
  frame.call_ip = step.from_ip;
  frame.entry_ip = step.to_ip;
  if ((step.flags & flow::IN_TX) != 0) frame.flags |= std::uint16_t{FRAME_IN_TX};
  if (step.to_known()) {
    const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
    if (edge.next == step.to_ip) return;  // reads its own address
    leave_stuffing();
    if ((stack().top().open & OPEN_PARK) != 0) begin = enter_scheduler(edge.is(CODE_LEAVE), after);
    frame.return_ip = edge.next;
    frame.function = edge.function;
    frame.flags |= std::uint16_t{FRAME_ENTRY};
    frame.open |= open_flags(edge);
    if (edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY)) frame.open |= inner_open_flags(edge);
  } else {
    frame.return_ip = facts_.end_of(step.from_ip);
  }
  if (frame.return_ip != 0) frame.flags |= std::uint16_t{FRAME_RETURN};
  push(frame, begin);
}

void StackMachine::on_jump(const Step& step, const Place& after, bool indirect) {
  if (stack().empty() || !step.to_known()) return;
  const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
  if ((stack().top().open & OPEN_STUB) != 0) return leave_stub(edge);
  if (edge.is(EDGE_INNER)) return;
  leave_stuffing();
  if (indirect && (stack().top().open & OPEN_SWITCH) != 0) return switch_stack(step, after);
  if (indirect && (stack().top().open & OPEN_RESOLVER) != 0) return tail(step, edge, after);
  if (edge.is(EDGE_TAIL) && edge.function != stack().top().function) {
    if (indirect && go_below(step, after, true)) return;
    return tail(step, edge, after);
  }
  if (!indirect || edge.function == stack().top().function) return;
  if (edge.is(EDGE_TAIL) || go_below(step, after, false) || edge.is(CODE_COLD)) return;
  const CodePlace from = facts_.at(step.from_ip);
  if (!edge.is(CODE_KNOWN) && !from.is(CODE_KNOWN)) return;  // within code without known functions
  if (edge.is(CODE_KNOWN)) note(AnomalyKind::JUMP_INSIDE, step, after);
  stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  tail(step, edge, after);
}

// The stub of the top frame jumps to another stub, or to the function.
void StackMachine::leave_stub(const EdgeFacts& edge) {
  OpenFrame& top = stack().top();
  if (edge.is(CODE_LAZY)) top.open |= std::uint16_t{OPEN_RESOLVER};  // which the next jump leads to
  if (edge.is(CODE_STUB)) return;
  top.open &= static_cast<std::uint16_t>(~OPEN_STUB);
  if (top.how == How::CALL) top.how = How::PLT;
  top.open |= open_flags(edge);
  stack().set_function(edge.to, edge.function);
}

// A jump to the entry of another function.
void StackMachine::tail(const Step& step, const EdgeFacts& edge, const Place& after) {
  if (edge.is(CODE_RETURN)) return;  // the return of the function that jumps
  const OpenFrame top = stack().top();
  OpenFrame frame;
  frame.how = How::TAIL;
  frame.flags = static_cast<std::uint16_t>(FRAME_EXACT | FRAME_BEGIN_SEEN | FRAME_CALL | FRAME_ENTRY |
                                           (top.flags & FRAME_RETURN));
  frame.call_ip = step.from_ip;
  frame.entry_ip = step.to_ip;
  frame.return_ip = top.return_ip;
  frame.function = edge.function;
  frame.tails = top.tails + 1;
  if ((step.flags & flow::IN_TX) != 0) frame.flags |= std::uint16_t{FRAME_IN_TX};
  // What setjmp() jumps to returns for it.
  frame.open |= static_cast<std::uint16_t>(open_flags(edge) | (top.open & OPEN_SETJMP));
  const bool resolved = (top.open & OPEN_RESOLVER) != 0;
  const bool replaces = resolved || tails_ == Tails::REPLACED || frame.tails > kMostTails;
  if (resolved || (replaces && top.how == How::SIGNAL)) {
    frame.how = top.how;  // of the function that the stub was for, or of the handler
    frame.call_ip = top.call_ip;
    frame.restart_ip = top.restart_ip;
  }
  if (replaces) {
    frame.tails = top.tails;
    frame.open |= static_cast<std::uint16_t>(top.open & OPEN_KERNEL);
    stack().pop(EndHow::TAIL, after);
  }
  push(frame, after);
}

}  // namespace ptkit::calls
