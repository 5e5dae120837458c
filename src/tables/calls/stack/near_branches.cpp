#include "tables/calls/stack/near_branches.h"

#include "base/addresses.h"

namespace ptkit::tables::calls {

namespace {

// Flags of a frame by its function.
[[nodiscard]] std::uint16_t open_flags(const EdgeFacts& edge) noexcept {
  unsigned open = 0;
  if (edge.is(CODE_SETJMP)) open |= OPEN_SETJMP;
  if (edge.is(CODE_RESOLVER)) open |= OPEN_RESOLVER;
  if (edge.is(CODE_SWITCH)) open |= OPEN_SWITCH;
  if (edge.is(CODE_LEAVE)) open |= OPEN_LEAVE;
  if (edge.is(CODE_MCALL)) open |= OPEN_MCALL;
  return static_cast<std::uint16_t>(open | kernel_open_flags(edge.flags));
}

// Of a call within its function, not to its begin. The kernel fills the return stack buffer by calls over
// INT3, or over a loop, and drops their return addresses (FILL_RETURN_BUFFER).
[[nodiscard]] std::uint16_t inner_open_flags(const EdgeFacts& edge) noexcept {
  constexpr std::uint64_t kMostBytesOver = 8;
  const bool fills = edge.from >= base::kKernelHalf && edge.to - edge.next <= kMostBytesOver;
  return static_cast<std::uint16_t>(fills ? OPEN_INNER | OPEN_RSB_STUFFING : OPEN_INNER);
}

// Not at the first instruction of a function.
[[nodiscard]] bool enters_inside(const EdgeFacts& edge) noexcept {
  return edge.is(CODE_KNOWN) && !edge.is(CODE_ENTRY);
}

void set_import(OpenFrame& frame, const BranchStep& step, std::uint32_t function) noexcept {
  frame.function = function;
  frame.import_ip = step.from_ip;
  frame.entry_ip = 0;
  frame.flags &= static_cast<std::uint16_t>(~FRAME_ENTRY);
  frame.flags |= std::uint16_t{FRAME_IMPORT};
}

}  // namespace

// The imported function that an indirect branch leads to, where the trace has no code of it.
std::uint32_t NearBranches::import_of(const BranchStep& step) {
  if (!step.from_known()) return kUnknownFunction;
  const bool is_traced = step.to_known() && !edges_.at(step.from_ip, step.to_ip).is(EDGE_NO_CODE);
  return is_traced ? kUnknownFunction : facts_.import_at(step.from_ip);
}

std::uint32_t NearBranches::import_of_call(const BranchStep& step) {
  return step.kind == flow::BranchKind::CALL_INDIRECT ? import_of(step) : kUnknownFunction;
}

// A jump through an import slot: by a stub, or by a function that the imported one returns for.
void NearBranches::leave_by_import(const BranchStep& step, std::uint32_t function,
                                   const StreamPosition& after) {
  const bool in_stub = stack().stub() != nullptr && !stack().stub()->is_own;
  enter_stub_as_function(after);
  if (!in_stub) push_tail(step, EdgeFacts{}, after);
  stack().set_import(step.from_ip, function);
}

void NearBranches::on_call(const BranchStep& step, const StreamPosition& after) {
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
  current_.push(frame, after);
}

// A call of a known address. `frame` has the fields that do not depend on it.
void NearBranches::call(const BranchStep& step, OpenFrame& frame, const StreamPosition& after) {
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
    return current_.push(frame, after);
  }
  if (edge.is(CODE_STUB | CODE_THUNK)) return enter_stub(edge, {.frame = frame, .step_flags = step.flags});
  StreamPosition begin = after;
  if ((stack().top().open & OPEN_MCALL) != 0) begin = suspended_.enter_scheduler(edge.is(CODE_LEAVE), after);
  frame.open = open_flags(edge);
  if (edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY)) frame.open |= inner_open_flags(edge);
  if (enters_inside(edge)) frame.flags &= static_cast<std::uint16_t>(~FRAME_BEGIN_SEEN);
  current_.push(frame, begin);
}

// A stub calls. False: it calls a function.
bool NearBranches::call_in_stub(const EdgeFacts& edge, const StreamPosition& after) {
  const bool is_inner = edge.is(EDGE_RETPOLINE) || (edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY));
  if (is_inner) {
    stack().stub()->inner_ip = edge.next;
  } else {
    enter_stub_as_function(after);
  }
  return is_inner;
}

// A retpoline in the function at the top.
void NearBranches::enter_retpoline(const EdgeFacts& edge) {
  Stub stub;
  stub.inner_ip = edge.next;
  stub.is_jump = stub.is_own = true;
  stack().enter_stub(stub);
}

// A call or a jump of a stub.
void NearBranches::enter_stub(const EdgeFacts& edge, Stub stub) {
  stub.frame.entry_ip = edge.to;
  stub.is_linked = !edge.is(CODE_THUNK);
  stack().enter_stub(stub);
}

void NearBranches::on_jump(const BranchStep& step, const StreamPosition& after, bool indirect) {
  if (stack().empty()) return;
  if (const std::uint32_t import = indirect ? import_of(step) : kUnknownFunction; import != kUnknownFunction)
    return leave_by_import(step, import, after);
  if (stack().stub() != nullptr) return leave_stub(step, after);
  if (!step.to_known()) return;
  const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
  if (indirect && (stack().top().open & OPEN_SWITCH) != 0) return suspended_.switch_stack(step, after);
  if (edge.is(EDGE_INNER)) return;
  skip_rsb_stuffing();
  if (indirect && (stack().top().open & OPEN_RESOLVER) != 0) return tail(step, edge, after);
  if (edge.is(EDGE_TAIL) && edge.function != stack().top().function) {
    if (indirect && suspended_.go_below(step, after, true)) return;
    return tail(step, edge, after);
  }
  if (!indirect || edge.function == stack().top().function) return;
  if (edge.is(EDGE_TAIL) || suspended_.jump_to_mark(step, after)) return;
  if (edge.is(CODE_KNOWN) && !edge.is(CODE_COLD) && suspended_.leave_stack(step, after)) return;
  if (suspended_.go_below(step, after, false) || edge.is(CODE_COLD)) return;
  const CodeLocation from = facts_.at(step.from_ip);
  if (!edge.is(CODE_KNOWN) && !from.is(CODE_KNOWN)) return;  // within code without known functions
  const bool is_known = edge.is(CODE_KNOWN);
  if (is_known) current_.note(AnomalyKind::JUMP_INSIDE, step, after);
  if (is_known) stack().top().doubt();
  stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  tail(step, edge, after, !is_known);
}

// The stub jumps to another stub, or to the function.
void NearBranches::leave_stub(const BranchStep& step, const StreamPosition& after) {
  if (!step.to_known()) return enter_stub_as_function(after);
  const EdgeFacts edge = edges_.at(step.from_ip, step.to_ip);
  Stub& stub = *stack().stub();
  if (edge.is(CODE_LAZY)) stub.frame.open |= std::uint16_t{OPEN_RESOLVER};  // which the next jump leads to
  if (edge.is(CODE_RETURN) || (edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY))) return;
  lead_on(edge, after);
}

void NearBranches::lead_on(const EdgeFacts& edge, const StreamPosition& after) {
  if (!edge.is(CODE_STUB)) return enter_function(edge, after);
  Stub& stub = *stack().stub();
  stub.frame.entry_ip = edge.to;
  stub.inner_ip = 0;
  stub.is_linked = stub.is_linked || !edge.is(CODE_THUNK);
}

// The stub has led to the function that `edge` enters.
void NearBranches::enter_function(const EdgeFacts& edge, const StreamPosition& after) {
  Stub stub = stack().leave_stub();
  if (stub.is_jump) {
    BranchStep step;
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
  current_.push(stub.frame, after);
}

void NearBranches::enter_stub_as_function(const StreamPosition& after) {
  const Stub* const stub = stack().stub();
  if (stub == nullptr) return;
  if (stub->is_own) return stack().drop_stub();
  enter_function(edges_.at(stub->frame.call_ip, stub->frame.entry_ip), after);
}

// A jump to the entry of another function.
void NearBranches::tail(const BranchStep& step, const EdgeFacts& edge, const StreamPosition& after,
                        bool is_certain) {
  if (edge.is(CODE_RETURN)) {  // the return of the function that jumps
    current_.thread().returning = after.branches;
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

void NearBranches::push_tail(const BranchStep& step, const EdgeFacts& edge, const StreamPosition& after,
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
  // The function that setjmp() jumps to returns for it.
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
  current_.push(frame, after);
}

void NearBranches::on_return(const BranchStep& step, const StreamPosition& after) {
  if (stack().empty()) return;
  const bool in_stub = stack().stub() != nullptr;
  if (in_stub && return_of_stub(step, after)) return;
  if (!step.to_known()) return stack().pop_chain(CallEnd::RETURN, after);
  if ((stack().top().open & OPEN_SWITCH) != 0) return suspended_.switch_stack(step, after);
  if (stack().top().returns_to(step.to_ip)) return current_.end_call(step.to_ip, after);
  return_elsewhere(step, after, in_stub);
}

void NearBranches::return_elsewhere(const BranchStep& step, const StreamPosition& after, bool in_stub) {
  if (leave_thunk(step, after)) return;
  // Unwinding ends with a RET. The address after a call that does not return may begin a landing pad.
  if (suspended_.go_below(step, after, true) || suspended_.leave_stack(step, after)) return;
  const bool is_resumed = current_.is_unseen() && !step.leaves;
  if (is_resumed &&
      facts_.at(step.to_ip).function == stack().at(stack().size() - 2 - stack().top().tails).function)
    return stack().pop_chain(CallEnd::RETURN, after);
  if (current_.return_deeper(step, after)) return;
  if (is_resumed) return resume_caller(step, after);
  if (stack().in_handler()) return leave_handler(step, after);
  if (step.leaves) return return_to_untraced(step, after);
  const EdgeFacts edge = edges_.at(step.from_ip, step.to_ip);
  if (current_.is_bottom() && !is_pushed_target(step)) return current_.return_to_unseen(step, after);
  if (edge.is(EDGE_TAIL)) {
    if (!in_stub && is_unexpected()) current_.note(AnomalyKind::RETURN_ELSEWHERE, step, after);
    return tail(step, edge, after);
  }
  if (suspended_.go_below(step, after, false)) return;
  go_on_elsewhere(step, edge, after);
}

// The top frame returns to a function that was called while packets were disabled.
void NearBranches::resume_caller(const BranchStep& step, const StreamPosition& after) {
  stack().pop_chain(CallEnd::RETURN, after);
  OpenFrame frame = current_.frame_within(CallKind::RESUMED, facts_.at(step.to_ip));
  current_.push(frame, after);
}

// A function that the kernel was made to call returns to the interrupted address: Go's asyncPreempt(). Others
// return to the code that calls sigreturn().
void NearBranches::leave_handler(const BranchStep& step, const StreamPosition& after) {
  if (stack().chain().call_ip == step.to_ip) return stack().pop_chain(CallEnd::RETURN, after);
  stack().top().open |= std::uint16_t{OPEN_RESTORER};
}

// A return that no rule explains: the function at its target takes the position of the top frame.
void NearBranches::go_on_elsewhere(const BranchStep& step, const EdgeFacts& edge,
                                   const StreamPosition& after) {
  current_.note(AnomalyKind::RETURN_ELSEWHERE, step, after);
  stack().top().doubt();
  const bool stays = edge.is(EDGE_INNER) || (!edge.is(CODE_KNOWN) && !facts_.at(step.from_ip).is(CODE_KNOWN));
  if (current_.is_bottom() && stays) return;
  const OpenFrame top = stack().top();
  stack().pop(CallEnd::RETURN, after);
  OpenFrame frame = current_.frame_within(CallKind::RESUMED, facts_.at(step.to_ip));
  frame.flags |= static_cast<std::uint16_t>(top.flags & FRAME_RETURN);
  frame.return_ip = top.return_ip;
  frame.tails = top.tails;
  frame.open = static_cast<std::uint16_t>(top.open & (OPEN_FIRST | OPEN_START));
  frame.doubt();
  current_.push(frame, after);
}

// To code that is not traced, which is no frame. A frame that it has called returns to it.
void NearBranches::return_to_untraced(const BranchStep& step, const StreamPosition& after) {
  if ((stack().top().flags & FRAME_RETURN) != 0) {
    current_.note(AnomalyKind::RETURN_ELSEWHERE, step, after);
    stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  }
  stack().pop_chain(CallEnd::RETURN, after);
}

// The top frame has no known caller. Whether it has not returned, but jumped to an address that it pushed: no
// call is before that, or the frame is that of a program's first code.
bool NearBranches::is_pushed_target(const BranchStep& step) {
  const unsigned first = stack().at(0).open;
  if ((first & OPEN_START) != 0) return true;
  const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
  const bool stays = edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY);
  return ((first & OPEN_FIRST) != 0 || stays) && !facts_.follows_call(step.to_ip);
}

// A return of the top frame to the entry of a function follows no call of that function. Resolvers of
// lazily bound functions, and the kernel where it begins a thread, do so.
bool NearBranches::is_unexpected() noexcept {
  const OpenFrame& top = stack().top();
  if ((top.open & (OPEN_RESOLVER | OPEN_TASK_SWITCH)) != 0) return false;
  return current_.is_bottom() || (top.flags & FRAME_RETURN) != 0;
}

// An interrupt has frames within the inner call of a thunk, so the call keeps its frame, which ends.
bool NearBranches::end_interrupted_thunk(const StreamPosition& after) {
  // Of the inner call: it changes the return address, and returns.
  constexpr std::uint64_t kMostInstructions = 4;
  const OpenFrame& inner = stack().top();
  if (stack().size() < 2 || inner.tails != 0) return false;
  if (after.instructions - inner.begin.instructions - inner.inner_instructions > kMostInstructions)
    return false;
  stack().pop(CallEnd::RETURN, after);
  return true;
}

// A retpoline calls within itself, and returns to the target of an indirect branch. A return thunk does so,
// and returns for its caller. The call has no frame of its own.
bool NearBranches::leave_thunk(const BranchStep& step, const StreamPosition& after) {
  if ((stack().top().open & OPEN_INNER) == 0) return false;
  if (!stack().cancel() && !end_interrupted_thunk(after)) return false;
  const OpenFrame& thunk = stack().top();
  if (thunk.returns_to(step.to_ip)) {
    if (thunk.tails != 0) static_cast<void>(stack().cancel());  // a return thunk that was jumped to
    current_.end_call(step.to_ip, after);
    return true;
  }
  if (!is_thunk(step, after)) {
    // A retpoline within the function: an indirect jump.
    on_jump(step, after, true);
    return true;
  }
  const EdgeFacts edge = edges_.at(step.from_ip, step.to_ip);
  const bool stays = thunk.tails != 0 && stack().size() > 1 &&
                     stack().at(stack().size() - 2).function == edge.function && !edge.is(CODE_ENTRY);
  OpenFrame called = thunk;
  if (!stack().cancel()) {
    if (enters_inside(edge)) stack().top().flags &= static_cast<std::uint16_t>(~FRAME_BEGIN_SEEN);
    stack().set_function(step.to_ip, edge.function);
    return true;
  }
  if (stays) return true;
  called.open = 0;
  stack().enter_stub({.frame = called, .step_flags = step.flags, .is_jump = called.tails != 0});
  lead_on(edge, after);
  return true;
}

// The top frame has begun to branch to where this return goes, by a call of its own code: it is a thunk, or
// such a call.
bool NearBranches::is_thunk(const BranchStep& step, const StreamPosition& after) {
  constexpr std::uint64_t kMostInstructions = 8;
  const OpenFrame& top = stack().top();
  if ((top.open & OPEN_INNER) == 0) {
    const CodeLocation code = facts_.at(step.from_ip);
    if (top.function != code.function || code.entry != top.entry_ip) return false;
  }
  return after.instructions - top.begin.instructions - top.inner_instructions <= kMostInstructions;
}

// A return in a stub. False: it is that of the function that has jumped to the stub, or it fits nothing.
bool NearBranches::return_of_stub(const BranchStep& step, const StreamPosition& after) {
  Stub& stub = *stack().stub();
  if (stub.inner_ip == 0 || (!step.to_known() && !stub.is_jump)) {
    enter_stub_as_function(after);
    return !step.to_known();
  }
  if (step.to_known() && step.to_ip == stub.inner_ip) {
    stub.inner_ip = 0;
    if (stub.is_own) stack().drop_stub();
    return true;
  }
  if (!stub.is_jump) {
    lead_on(edges_.at(step.from_ip, step.to_ip), after);
    return true;
  }
  if (!step.to_known() || stack().top().returns_to(step.to_ip)) {
    stack().drop_stub();
    return false;
  }
  return jump_by_return(step, after);
}

// A return of a function that jumps by a retpoline of its own, or jumps to a thunk.
bool NearBranches::jump_by_return(const BranchStep& step, const StreamPosition& after) {
  const EdgeFacts edge = edges_.at(step.from_ip, step.to_ip);
  const bool is_own = stack().stub()->is_own;
  const bool stays = edge.is(CODE_KNOWN) && !edge.is(CODE_ENTRY) && edge.function == stack().top().function;
  if (!is_own && !stays && (edge.is(CODE_ENTRY) || !edge.is(CODE_KNOWN))) {
    lead_on(edge, after);
    return true;
  }
  stack().drop_stub();
  if (stays) return true;
  if (!is_own || (current_.is_bottom() && !edge.is(EDGE_TAIL))) return false;
  if (!edge.is(EDGE_TAIL) && current_.return_deeper(step, after)) return true;
  on_jump(step, after, true);
  return true;
}

}  // namespace ptkit::tables::calls
