// Returns, and what else leaves frames: exceptions, longjmp(), signals, system calls, aborted transactions.
#include <algorithm>

#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

void StackMachine::on_return(const Step& step, const StreamPosition& after) {
  if (stack().empty()) return;
  const bool in_stub = stack().stub() != nullptr;
  if (in_stub && return_of_stub(step, after)) return;
  if (!step.to_known()) return stack().pop_chain(CallEnd::RETURN, after);
  if ((stack().top().open & OPEN_SWITCH) != 0) return switch_stack(step, after);
  if (stack().top().returns_to(step.to_ip)) return end_call(step.to_ip, after);
  return_elsewhere(step, after, in_stub);
}

// The top frame returns to its caller, which is below it.
void StackMachine::end_call(std::uint64_t to, const StreamPosition& after) {
  const bool is_setjmp = (stack().top().open & OPEN_SETJMP) != 0;
  stack().pop_chain(CallEnd::RETURN, after);
  if (stack().empty()) ensure_frame(to, after);
  if (is_setjmp) stack().mark(to);
}

void StackMachine::return_elsewhere(const Step& step, const StreamPosition& after, bool in_stub) {
  if (leave_thunk(step, after)) return;
  // Unwinding ends with a RET. The address behind a call that does not return may begin a landing pad.
  if (go_below(step, after, true) || leave_stack(step, after)) return;
  const bool is_resumed = is_unseen();
  if (is_resumed && !step.leaves &&
      facts_.at(step.to_ip).function == stack().at(stack().size() - 2 - stack().top().tails).function)
    return stack().pop_chain(CallEnd::RETURN, after);
  if (return_deeper(step, after)) return;
  if (is_resumed && !step.leaves) return resume_caller(step, after);
  if (stack().in_handler()) {
    // A function that the kernel was made to call, at the interrupted address: Go's asyncPreempt().
    if (stack().chain().call_ip == step.to_ip) return stack().pop_chain(CallEnd::RETURN, after);
    stack().top().open |= std::uint16_t{OPEN_RESTORER};
    return;
  }
  if (step.leaves) return return_to_untraced(step, after);
  const EdgeFacts edge = edges_.at(step.from_ip, step.to_ip);
  if (is_bottom() && !is_pushed_target(step)) return return_to_unseen(step, after);
  if (edge.is(EDGE_TAIL)) {
    if (!in_stub && is_unasked()) note(AnomalyKind::RETURN_ELSEWHERE, step, after);
    return tail(step, edge, after);
  }
  if (go_below(step, after, false)) return;
  note(AnomalyKind::RETURN_ELSEWHERE, step, after);
  stack().top().doubt();
  const bool stays = edge.is(EDGE_INNER) || (!edge.is(CODE_KNOWN) && !facts_.at(step.from_ip).is(CODE_KNOWN));
  if (is_bottom() && stays) return;
  const OpenFrame top = stack().top();
  stack().pop(CallEnd::RETURN, after);
  const CodeLocation code = facts_.at(step.to_ip);
  OpenFrame frame = frame_at(CallKind::RESUMED, code.entry);
  frame.flags =
      static_cast<std::uint16_t>((code.is(CODE_KNOWN) ? FRAME_ENTRY : 0) | (top.flags & FRAME_RETURN));
  frame.return_ip = top.return_ip;
  frame.tails = top.tails;
  frame.open = static_cast<std::uint16_t>(top.open & (OPEN_FIRST | OPEN_START));
  frame.doubt();
  push(frame, after);
}

// To code that is not traced, which is no frame. A frame that it has called returns to it.
void StackMachine::return_to_untraced(const Step& step, const StreamPosition& after) {
  if ((stack().top().flags & FRAME_RETURN) != 0) {
    note(AnomalyKind::RETURN_ELSEWHERE, step, after);
    stack().top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  }
  stack().pop_chain(CallEnd::RETURN, after);
}

// The top frame has no known caller. Whether it has not returned, but jumped to an address that it pushed: no
// call is before that, or the frame is that of a program's first code.
bool StackMachine::is_pushed_target(const Step& step) {
  const unsigned first = stack().at(0).open;
  if ((first & OPEN_START) != 0) return true;
  const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
  const bool stays = edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY);
  return ((first & OPEN_FIRST) != 0 || stays) && !facts_.follows_call(step.to_ip);
}

// A return of the top frame to the entry of a function goes where no call has asked for it. Resolvers of
// lazily bound functions, and the kernel where it begins a thread, do so.
bool StackMachine::is_unasked() noexcept {
  const OpenFrame& top = stack().top();
  if ((top.open & (OPEN_RESOLVER | OPEN_TASK_SWITCH)) != 0) return false;
  return is_bottom() || (top.flags & FRAME_RETURN) != 0;
}

// An interrupt has frames within the inner call of a thunk, so the call keeps its frame, which ends.
bool StackMachine::end_interrupted_thunk(const StreamPosition& after) {
  constexpr std::uint64_t kMostInstructions =
      4;  // of the inner call: it changes the return address, and returns
  const OpenFrame& inner = stack().top();
  if (stack().size() < 2 || inner.tails != 0) return false;
  if (after.instructions - inner.begin.instructions - inner.inner_instructions > kMostInstructions)
    return false;
  stack().pop(CallEnd::RETURN, after);
  return true;
}

// A retpoline calls within itself, and returns to the target of an indirect branch. A return thunk does so,
// and returns for its caller. The call has no frame of its own.
bool StackMachine::leave_thunk(const Step& step, const StreamPosition& after) {
  if ((stack().top().open & OPEN_INNER) == 0) return false;
  if (!stack().cancel() && !end_interrupted_thunk(after)) return false;
  const OpenFrame& thunk = stack().top();
  if (thunk.returns_to(step.to_ip)) {
    // A return thunk that was jumped to.
    const bool is_tail = thunk.tails != 0 && stack().cancel();
    static_cast<void>(is_tail);
    end_call(step.to_ip, after);
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
bool StackMachine::is_thunk(const Step& step, const StreamPosition& after) {
  constexpr std::uint64_t kMostInstructions = 8;
  const OpenFrame& top = stack().top();
  if ((top.open & OPEN_INNER) == 0) {
    const CodeLocation here = facts_.at(step.from_ip);
    if (top.function != here.function || here.entry != top.entry_ip) return false;
  }
  return after.instructions - top.begin.instructions - top.inner_instructions <= kMostInstructions;
}

// A return in a stub. False: it is that of the function that has jumped to the stub, or it fits nothing.
bool StackMachine::return_of_stub(const Step& step, const StreamPosition& after) {
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

// The same of a function that jumps by a retpoline of its own, or jumps to a thunk.
bool StackMachine::jump_by_return(const Step& step, const StreamPosition& after) {
  const EdgeFacts edge = edges_.at(step.from_ip, step.to_ip);
  const bool is_own = stack().stub()->is_own;
  const bool stays = edge.is(CODE_KNOWN) && !edge.is(CODE_ENTRY) && edge.function == stack().top().function;
  if (!is_own && !stays && (edge.is(CODE_ENTRY) || !edge.is(CODE_KNOWN))) {
    lead_on(edge, after);
    return true;
  }
  stack().drop_stub();
  if (stays) return true;
  if (!is_own || (is_bottom() && !edge.is(EDGE_TAIL))) return false;
  if (!edge.is(EDGE_TAIL) && return_deeper(step, after)) return true;
  on_jump(step, after, true);
  return true;
}

// The innermost frame that returns to `ip`; kNone: there is none.
std::size_t StackMachine::frame_returning_to(std::uint64_t ip) noexcept {
  constexpr std::uint64_t kAlways = 64;
  std::uint64_t left = kAlways + search_;
  for (std::size_t i = stack().size(); i-- > 0 && left-- > 0;) {
    if (i + kAlways < stack().size() && search_ != 0) --search_;
    if (stack().at(i).returns_to(ip)) return i;
  }
  return kNone;
}

// A return to the caller of a frame below the top.
bool StackMachine::return_deeper(const Step& step, const StreamPosition& after) {
  const std::size_t frame = frame_returning_to(step.to_ip);
  if (frame == kNone) return false;
  note(AnomalyKind::SKIPPED_FRAMES, step, after);
  // Frames that jumped share the address: the innermost one is the one that returns.
  stack().doubt(frame + 1);
  stack().pop_to(frame + 1, CallEnd::UNWIND, after, false);
  end_call(step.to_ip, after);
  return true;
}

// Only frames that share a return address are open, and it is not known.
bool StackMachine::is_bottom() noexcept {
  const OpenFrame& top = stack().top();
  return (top.flags & FRAME_RETURN) == 0 && stack().size() == std::size_t{top.tails} + 1;
}

// The function at the top was called while packets were disabled, by functions above those that are known.
bool StackMachine::is_unseen() noexcept {
  const OpenFrame& top = stack().top();
  return stack().chain().how == CallKind::RESUMED && (top.flags & FRAME_RETURN) == 0 && !is_bottom();
}

// It returns to such a function.
void StackMachine::resume_caller(const Step& step, const StreamPosition& after) {
  stack().pop_chain(CallEnd::RETURN, after);
  const CodeLocation code = facts_.at(step.to_ip);
  OpenFrame frame = frame_at(CallKind::RESUMED, code.entry);
  frame.flags = code.is(CODE_KNOWN) ? FRAME_ENTRY : 0;
  push(frame, after);
}

void StackMachine::return_to_unseen(const Step& step, const StreamPosition& after) {
  has_unseen_stacks_ = true;
  const CodeLocation code = facts_.at(step.to_ip);
  OpenFrame caller = frame_at(CallKind::ROOT, code.entry);
  caller.flags = code.is(CODE_KNOWN) ? FRAME_ENTRY : 0;
  if (!code.is(CODE_KNOWN)) caller.function = unknown_function();
  caller.open = kernel_open_flags(code.flags);
  // After a gap: the return addresses of the frames that it ended come in their order.
  auto& gap_frames = thread_->gap_frames;
  while (!gap_frames.empty()) {
    const GapFrame last = gap_frames.back();
    gap_frames.pop_back();
    if (last.return_ip == step.to_ip) {
      ++thread_->matched;
      if (thread_->matched >= 2 && !gap_frames.empty()) {
        caller.how = CallKind::RESUMED;
        caller.continues = gap_frames.back().id;
        caller.flags |= FRAME_CONTINUES;
      }
      break;
    }
    thread_->matched = 0;
  }
  stack().return_below(caller, after);
}

// longjmp(): control goes on behind a call of setjmp().
bool StackMachine::jump_to_mark(const Step& step, const StreamPosition& after) {
  std::vector<Candidate> candidates = marked_frames(step.to_ip);
  if (candidates.empty()) return false;
  if (candidates.size() == 1) {
    const std::size_t only = candidates.front().number();
    const bool is_certain = MarkedFrame::of(only).suspended == 0 || !may_be_elsewhere();
    if (!is_certain) doubt_marked(candidates, step, after);
    leave_to_mark(only, step, after, is_certain);
    return true;
  }
  Step cause = step;
  cause.position = after;
  choose(std::move(candidates), cause, Input::Kind::LONGJMP);
  return true;
}

// The frames that called setjmp() there, the most likely one first. Frames of other stacks count if there is
// none, where longjmp() has gone to other stacks before, and if it would go back to the function that calls
// it: coroutines call both in one function.
std::vector<Candidate> StackMachine::marked_frames(std::uint64_t ip) const {
  const ThreadStack& stack = thread_->stack;
  std::vector<Candidate> candidates;
  for (const std::size_t frame : stack.marked(ip)) candidates.emplace_back(stack, frame + 1, frame);
  if (suspended_.empty()) return candidates;
  const std::size_t caller = stack.size() - std::min<std::size_t>(stack.size(), 2 + stack.top().tails);
  const bool is_caller = !candidates.empty() && candidates.front().number() == caller;
  if (!candidates.empty() && !is_caller && !jumps_to_stacks_) return candidates;
  std::vector<Candidate> others;
  for (std::size_t i = 0; i < suspended_.size(); ++i) {
    const SuspendedStack& one = suspended_[i];
    const ThreadStack& other = one.thread->stack;
    if (one.key.first != key_.first || other.owner().space != owner_.space) continue;
    for (const std::size_t frame : other.marked(ip))
      others.emplace_back(other, frame + 1, MarkedFrame{i + 1, frame}.number());
  }
  candidates.insert(is_caller ? candidates.begin() : candidates.end(), others.begin(), others.end());
  return candidates;
}

void StackMachine::leave_to_mark(std::size_t number, const Step& step, StreamPosition after,
                                 bool is_certain) {
  const MarkedFrame marked = MarkedFrame::of(number);
  if (marked.suspended != 0) {
    jumps_to_stacks_ = true;
    if ((stack().top().open & OPEN_LEAVE) != 0) end_all(CallEnd::SWITCH, after);
    after = take_suspended(marked.suspended - 1, after, 0);
  }
  unwind_to(marked.frame + 1, CallEnd::LONGJMP, after, is_certain);
  stack().use_mark(step.to_ip);
}

// Control goes on in the code of the frame that is then at the top, and in no stub of it.
void StackMachine::unwind_to(std::size_t size, CallEnd how, const StreamPosition& after, bool exact) {
  stack().pop_to(size, how, after, exact);
  if (stack().stub() != nullptr) stack().drop_stub();
}

// Control goes on within a frame below the top: behind a call of setjmp(), or where an exception is caught.
bool StackMachine::go_below(const Step& step, const StreamPosition& after, bool only_certain) {
  if (jump_to_mark(step, after)) return true;
  const CodeLocation code = facts_.at(step.to_ip);
  const bool is_pad = code.is(CODE_LANDING_PAD);
  if (only_certain && !is_pad) return false;
  constexpr std::size_t kMostBelow = 1U << 12U;
  const std::size_t least = stack().size() - std::min(stack().size(), kMostBelow);
  for (std::size_t i = stack().size() - 1; is_pad && i-- > least;) {
    const OpenFrame& above = stack().at(i + 1);
    if ((above.flags & FRAME_CALL) == 0 || above.how == CallKind::TAIL) continue;
    if (facts_.landing_pad_of(above.call_ip) != step.to_ip) continue;
    unwind_to(i + 1, CallEnd::UNWIND, after, true);
    return true;
  }
  if (only_certain || !code.is(CODE_KNOWN) || code.is(CODE_ENTRY)) return false;
  for (std::size_t i = stack().size() - 1; i-- > least;) {
    if (stack().at(i).function != code.function) continue;
    unwind_to(i + 1, CallEnd::UNWIND, after, false);
    return true;
  }
  return false;
}

void StackMachine::on_abort(const Step& step, const StreamPosition& after) {
  while (!stack().empty() && (stack().top().flags & FRAME_IN_TX) != 0) stack().pop(CallEnd::ABORT, after);
  if (step.to_known()) ensure_frame(step.to_ip, after);
}

}  // namespace ptkit::tables::calls
