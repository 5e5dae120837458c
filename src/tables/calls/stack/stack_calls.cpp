// Calls and jumps: how frames of user code begin.
#include "base/addresses.h"
#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

// What is known of a frame by its function.
std::uint16_t StackMachine::open_flags(const EdgeFacts& edge) noexcept {
  unsigned open = 0;
  if (edge.is(CODE_SETJMP)) open |= OPEN_SETJMP;
  if (edge.is(CODE_RESOLVER)) open |= OPEN_RESOLVER;
  if (edge.is(CODE_SWITCH)) open |= OPEN_SWITCH;
  if (edge.is(CODE_LEAVE)) open |= OPEN_LEAVE;
  if (edge.is(CODE_MCALL)) open |= OPEN_MCALL;
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
  return static_cast<std::uint16_t>(fills ? OPEN_INNER | OPEN_RSB_STUFFING : OPEN_INNER);
}

// The imported function that an indirect branch leads to, where the trace has no code of it.
std::uint32_t StackMachine::import_of(const Step& step) {
  if (!step.from_known()) return kUnknownFunction;
  const bool is_traced = step.to_known() && !edges_.at(step.from_ip, step.to_ip).is(EDGE_NO_CODE);
  return is_traced ? kUnknownFunction : facts_.import_at(step.from_ip);
}

std::uint32_t StackMachine::import_of_call(const Step& step) {
  return step.kind == flow::BranchKind::CALL_INDIRECT ? import_of(step) : kUnknownFunction;
}

void StackMachine::set_import(OpenFrame& frame, const Step& step, std::uint32_t function) noexcept {
  frame.function = function;
  frame.import_ip = step.from_ip;
  frame.entry_ip = 0;
  frame.flags &= static_cast<std::uint16_t>(~FRAME_ENTRY);
  frame.flags |= std::uint16_t{FRAME_IMPORT};
}

// A jump through an import slot: by a stub, or by a function that the imported one returns for.
void StackMachine::leave_by_import(const Step& step, std::uint32_t function, const StreamPosition& after) {
  const bool in_stub = stack().stub() != nullptr && !stack().stub()->is_own;
  enter_stub_as_function(after);
  if (!in_stub) push_tail(step, EdgeFacts{}, after);
  stack().set_import(step.from_ip, function);
}

void StackMachine::on_call(const Step& step, const StreamPosition& after) {
  if (stack().empty()) return;
  OpenFrame frame;
  frame.how = CallKind::CALL;
  frame.flags = FRAME_EXACT | FRAME_BEGIN_SEEN | FRAME_CALL;
  frame.call_ip = step.from_ip;
  if ((step.flags & flow::IN_TX) != 0) frame.flags |= std::uint16_t{FRAME_IN_TX};
  if (step.to_known()) return call(step, frame, after);
  enter_stub_as_function(after);
  frame.return_ip = facts_.end_of(step.from_ip);
  if (const std::uint32_t import = import_of_call(step); import != kUnknownFunction)
    set_import(frame, step, import);
  if (frame.return_ip != 0) frame.flags |= std::uint16_t{FRAME_RETURN};
  push(frame, after);
}

// A call of a known address. `frame` has what is known without that.
void StackMachine::call(const Step& step, OpenFrame& frame, const StreamPosition& after) {
  const EdgeFacts edge = edges_.at(step.from_ip, step.to_ip);
  if (edge.next == step.to_ip) return;  // reads its own address
  if (stack().stub() != nullptr && call_in_stub(edge, after)) return;
  skip_rsb_stuffing();
  if (edge.is(EDGE_RETPOLINE) && !edge.is(CODE_ENTRY)) return enter_retpoline(edge);
  frame.entry_ip = step.to_ip;
  frame.return_ip = edge.next;
  frame.function = edge.function;
  frame.flags |= std::uint16_t{FRAME_ENTRY};
  if (frame.return_ip != 0) frame.flags |= std::uint16_t{FRAME_RETURN};
  if (const std::uint32_t import = import_of_call(step); import != kUnknownFunction) {
    set_import(frame, step, import);
    return push(frame, after);
  }
  if (edge.is(CODE_STUB | CODE_THUNK)) return enter_stub(edge, {.frame = frame, .step_flags = step.flags});
  StreamPosition begin = after;
  if ((stack().top().open & OPEN_MCALL) != 0) begin = enter_scheduler(edge.is(CODE_LEAVE), after);
  frame.open = open_flags(edge);
  if (edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY)) frame.open |= inner_open_flags(edge);
  if (enters_inside(edge)) frame.flags &= static_cast<std::uint16_t>(~FRAME_BEGIN_SEEN);
  push(frame, begin);
}

// A stub calls. False: what it calls is a function.
bool StackMachine::call_in_stub(const EdgeFacts& edge, const StreamPosition& after) {
  const bool is_inner = edge.is(EDGE_RETPOLINE) || (edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY));
  if (is_inner) {
    stack().stub()->inner_ip = edge.next;
  } else {
    enter_stub_as_function(after);
  }
  return is_inner;
}

// A retpoline in the function at the top.
void StackMachine::enter_retpoline(const EdgeFacts& edge) {
  Stub stub;
  stub.inner_ip = edge.next;
  stub.is_jump = stub.is_own = true;
  stack().enter_stub(stub);
}

// A call or a jump of a stub.
void StackMachine::enter_stub(const EdgeFacts& edge, Stub stub) {
  stub.frame.entry_ip = edge.to;
  stub.is_linked = !edge.is(CODE_THUNK);
  stack().enter_stub(stub);
}

void StackMachine::on_jump(const Step& step, const StreamPosition& after, bool indirect) {
  if (stack().empty()) return;
  if (const std::uint32_t import = indirect ? import_of(step) : kUnknownFunction; import != kUnknownFunction)
    return leave_by_import(step, import, after);
  if (stack().stub() != nullptr) return leave_stub(step, after);
  if (!step.to_known()) return;
  const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
  if (indirect && (stack().top().open & OPEN_SWITCH) != 0) return switch_stack(step, after);
  if (edge.is(EDGE_INNER)) return;
  skip_rsb_stuffing();
  if (indirect && (stack().top().open & OPEN_RESOLVER) != 0) return tail(step, edge, after);
  if (edge.is(EDGE_TAIL) && edge.function != stack().top().function) {
    if (indirect && go_below(step, after, true)) return;
    return tail(step, edge, after);
  }
  if (!indirect || edge.function == stack().top().function) return;
  if (edge.is(EDGE_TAIL) || jump_to_mark(step, after)) return;
  if (edge.is(CODE_KNOWN) && !edge.is(CODE_COLD) && leave_stack(step, after)) return;
  if (go_below(step, after, false) || edge.is(CODE_COLD)) return;
  const CodeLocation from = facts_.at(step.from_ip);
  if (!edge.is(CODE_KNOWN) && !from.is(CODE_KNOWN)) return;  // within code without known functions
  const bool is_known = edge.is(CODE_KNOWN);
  if (is_known) note(AnomalyKind::JUMP_INSIDE, step, after);
  if (is_known) stack().top().doubt();
  stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  tail(step, edge, after, !is_known);
}

// Not at the first instruction of a function.
bool StackMachine::enters_inside(const EdgeFacts& edge) noexcept {
  return edge.is(CODE_KNOWN) && !edge.is(CODE_ENTRY);
}

// The stub jumps to another stub, or to the function.
void StackMachine::leave_stub(const Step& step, const StreamPosition& after) {
  if (!step.to_known()) return enter_stub_as_function(after);
  const EdgeFacts edge = edges_.at(step.from_ip, step.to_ip);
  Stub& stub = *stack().stub();
  if (edge.is(CODE_LAZY)) stub.frame.open |= std::uint16_t{OPEN_RESOLVER};  // which the next jump leads to
  if (edge.is(CODE_RETURN) || (edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY))) return;
  lead_on(edge, after);
}

void StackMachine::lead_on(const EdgeFacts& edge, const StreamPosition& after) {
  if (!edge.is(CODE_STUB)) return enter_function(edge, after);
  Stub& stub = *stack().stub();
  stub.frame.entry_ip = edge.to;
  stub.inner_ip = 0;
  stub.is_linked = stub.is_linked || !edge.is(CODE_THUNK);
}

// The stub has led to the function that `edge` enters.
void StackMachine::enter_function(const EdgeFacts& edge, const StreamPosition& after) {
  Stub stub = stack().leave_stub();
  if (stub.is_jump) {
    Step step;
    step.from_ip = stub.frame.call_ip;
    step.to_ip = edge.to;
    step.flags = stub.step_flags;
    push_tail(step, edge, after, (stub.frame.flags & FRAME_UNDECIDED) == 0);
    stack().top().open |= stub.frame.open;
    return;
  }
  if (stub.frame.how == CallKind::CALL && stub.is_linked) stub.frame.how = CallKind::PLT;
  stub.frame.entry_ip = edge.to;
  stub.frame.function = edge.function;
  stub.frame.open |= open_flags(edge);
  if (enters_inside(edge)) stub.frame.flags &= static_cast<std::uint16_t>(~FRAME_BEGIN_SEEN);
  push(stub.frame, after);
}

// The stub, if there is any, leads to code that is not traced, or to none: it is the function itself.
void StackMachine::enter_stub_as_function(const StreamPosition& after) {
  const Stub* const stub = stack().stub();
  if (stub == nullptr) return;
  if (stub->is_own) return stack().drop_stub();
  enter_function(edges_.at(stub->frame.call_ip, stub->frame.entry_ip), after);
}

// A jump to the entry of another function.
void StackMachine::tail(const Step& step, const EdgeFacts& edge, const StreamPosition& after,
                        bool is_certain) {
  if (edge.is(CODE_RETURN)) {  // the return of the function that jumps
    thread_->returning = after.branches;
    return;
  }
  if (!edge.is(CODE_STUB)) return push_tail(step, edge, after, is_certain);
  Stub stub;
  if (!is_certain) stub.frame.doubt();
  stub.frame.call_ip = step.from_ip;
  stub.step_flags = step.flags;
  stub.is_jump = true;
  enter_stub(edge, stub);
}

void StackMachine::push_tail(const Step& step, const EdgeFacts& edge, const StreamPosition& after,
                             bool is_certain) {
  const OpenFrame top = stack().top();
  OpenFrame frame;
  frame.how = CallKind::TAIL;
  frame.flags = static_cast<std::uint16_t>(FRAME_EXACT | FRAME_BEGIN_SEEN | FRAME_CALL | FRAME_ENTRY |
                                           (top.flags & FRAME_RETURN));
  if (enters_inside(edge)) frame.flags &= static_cast<std::uint16_t>(~FRAME_BEGIN_SEEN);
  if (!is_certain) frame.doubt();
  frame.call_ip = step.from_ip;
  frame.entry_ip = step.to_ip;
  frame.return_ip = top.return_ip;
  frame.function = edge.function;
  frame.tails = top.tails + 1;
  if ((step.flags & flow::IN_TX) != 0) frame.flags |= std::uint16_t{FRAME_IN_TX};
  // What setjmp() jumps to returns for it.
  frame.open |= static_cast<std::uint16_t>(open_flags(edge) | (top.open & OPEN_SETJMP));
  const bool resolved = (top.open & OPEN_RESOLVER) != 0;
  // Control may come back to a function that jumps far.
  const bool is_far = is_far_transfer(step.kind);
  if (is_far) frame.open |= std::uint16_t{OPEN_FAR};
  const bool replaces = resolved || (tails_ == Tails::REPLACED && !is_far) || frame.tails > kMostTails;
  if (resolved || (replaces && top.how == CallKind::SIGNAL)) {
    frame.how = top.how;  // of the function that the stub was for, or of the handler
    frame.call_ip = top.call_ip;
    frame.restart_ip = top.restart_ip;
  }
  if (replaces) {
    frame.tails = top.tails;
    frame.open |= static_cast<std::uint16_t>(top.open & (OPEN_KERNEL | OPEN_FIRST | OPEN_START));
    stack().pop(CallEnd::TAIL, after);
  }
  push(frame, after);
}

}  // namespace ptkit::tables::calls
