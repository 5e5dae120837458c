#include "calls/stack_machine.h"

#include <algorithm>

namespace ptkit::calls {

using flow::BranchKind;

namespace {

[[nodiscard]] Place after_branch(Place place) noexcept {
  ++place.instructions;
  ++place.branches;
  return place;
}

[[nodiscard]] std::uint16_t known(bool is_known, FrameFlag flag) noexcept {
  return is_known ? static_cast<std::uint16_t>(flag) : std::uint16_t{0};
}

}  // namespace

StackMachine::StackMachine(CodeFacts& facts, FrameSink& sink, Tails tails, FrameGroups* groups)
    : facts_(facts), sink_(sink), tails_(tails), groups_(groups), edges_(facts) {
  on_owner({}, {});
}

// The same place with counts of the thread.
Place StackMachine::local(Place place) const noexcept {
  place.instructions =
      std::max(place.instructions, thread_->other_instructions) - thread_->other_instructions;
  place.branches = std::max(place.branches, thread_->other_branches) - thread_->other_branches;
  return place;
}

void StackMachine::find_code(const Place& place) {
  const CodeVersion found = facts_.follow(owner_.space, place.time_known ? place.tsc : trace::kTscMin);
  if (!has_code_ || found.number != version_.number) edges_.clear();
  version_ = found;
  has_code_ = true;
}

OpenFrame StackMachine::frame_at(How how, std::uint64_t ip) const {
  OpenFrame frame;
  frame.how = how;
  frame.entry_ip = ip;
  frame.function = facts_.function_at(ip);
  frame.flags = FRAME_ENTRY | FRAME_EXACT | FRAME_BEGIN_SEEN;
  return frame;
}

void StackMachine::push(OpenFrame& frame, const Place& begin) {
  if (stack().size() >= kMostFrames) {
    Step step;
    step.to_ip = frame.entry_ip;
    note(AnomalyKind::TOO_DEEP, step, begin);
    end_all(EndHow::GAP, begin);
    stack().begin_segment(begin);
  }
  frame.begin = begin;
  ++search_;
  static_cast<void>(stack().push(frame));
}

// The frame of code that runs without a call in the trace.
void StackMachine::ensure_frame(std::uint64_t ip, const Place& place) {
  if (!stack().empty()) return;
  if (!thread_->begun) {
    // What was executed before the first branch is of this frame.
    Place begin = place;
    begin.instructions = stack().bare_since().instructions;
    begin.branches = stack().bare_since().branches;
    stack().begin_segment(begin);
  }
  const CodePlace code = facts_.at(ip);
  OpenFrame frame = frame_at(How::ROOT, code.entry);
  const bool begins = code.is(CODE_KNOWN) ? ip == code.entry : false;
  frame.flags = known(code.is(CODE_KNOWN), FRAME_ENTRY);
  if (begins) frame.flags |= FRAME_EXACT | FRAME_BEGIN_SEEN;
  if (!code.is(CODE_KNOWN)) frame.function = kUnknownFunction;
  if (code.is(CODE_CLONE)) frame.how = How::THREAD;
  thread_->begun = true;
  push(frame, stack().bare_since());
}

void StackMachine::note(AnomalyKind kind, const Step& step, const Place& place) {
  Anomaly anomaly;
  anomaly.place = place;
  anomaly.kind = kind;
  anomaly.from_ip = step.from_ip;
  anomaly.from_known = step.from_known();
  anomaly.to_ip = step.to_ip;
  if (!stack().empty()) {
    const OpenFrame& top = stack().top();
    anomaly.frame_known = true;
    anomaly.frame = top.id;
    anomaly.depth = top.depth;
    anomaly.expected_known = (top.flags & FRAME_RETURN) != 0;
    anomaly.expected_ip = top.return_ip;
  }
  sink_.on_anomaly(anomaly, owner_);
}

void StackMachine::end_all(EndHow how, const Place& end) {
  while (!stack().empty()) stack().pop(how, end);
}

void StackMachine::on_owner(const Owner& owner, const Place& place) {
  if (thread_ != nullptr && owner == owner_ && !left_) return;
  const bool known_thread = owner.tid != trace::kNoId;
  const Key key = known_thread ? Key{owner.pid, owner.tid} : Key{trace::kNoId, trace::kNoId};
  if (thread_ != nullptr && !left_) on_leave(place);
  left_ = false;
  auto& thread = threads_[key];
  const bool is_new = thread == nullptr;
  if (is_new) thread = std::make_unique<Thread>(ids_, groups_, sink_, owner);
  thread_ = thread.get();
  key_ = key;
  thread_->other_instructions = place.instructions - thread_->instructions;
  thread_->other_branches = place.branches - thread_->branches;
  // Another program: exec() ends all frames.
  if (!is_new && stack().owner().space != owner.space && !stack().empty() && known_thread) {
    end_all(EndHow::END, local(place));
    thread_->begun = false;
  }
  stack().set_owner(owner);
  owner_ = owner;
  has_code_ = false;
}

void StackMachine::on_leave(const Place& place) {
  const Place now = local(place);
  thread_->instructions = now.instructions;
  thread_->branches = now.branches;
  left_ = true;
}

void StackMachine::on_gap(const Place& place) {
  const Place end = local(place);
  thread_->suspended.clear();
  thread_->matched = 0;
  for (std::size_t i = 0; i < stack().size(); ++i) {
    const OpenFrame& open = stack().at(i);
    // Of frames that share a return address, the innermost one returns.
    if (open.tails != 0) thread_->suspended.pop_back();
    thread_->suspended.push_back({open.id, open.return_ip});
  }
  end_all(EndHow::GAP, end);
  thread_->begun = false;
  thread_->off = Off::NONE;
}

void StackMachine::finish(const Place& place) {
  if (!left_) on_leave(place);
  for (auto& [key, thread] : threads_) end_thread(*thread, place);
  for (Parked& parked : parked_) end_thread(*parked.thread, place);
}

void StackMachine::end_thread(Thread& thread, const Place& place) {
  thread_ = &thread;
  owner_ = stack().owner();
  Place end = place;
  end.instructions = thread.instructions;
  end.branches = thread.branches;
  if (stack().empty() && end.instructions != stack().bare_since().instructions) push_unknown();
  end_all(EndHow::END, end);
}

// A frame for instructions of which the function is not known.
void StackMachine::push_unknown() {
  OpenFrame frame;
  stack().begin_segment(stack().bare_since());
  push(frame, stack().bare_since());
}

void StackMachine::on_branch(const Step& step) {
  const Place place = local(step.place);
  follow_code(place);
  if (step.from_known()) ensure_frame(step.from_ip, place);
  if (in_leaf()) stack().pop(EndHow::RETURN, place);  // branch records do not say where it goes on
  switch (step.kind) {
    case BranchKind::CALL:
    case BranchKind::CALL_INDIRECT:
      return on_call(step, after_branch(place));
    case BranchKind::RETURN:
      return on_return(step, after_branch(place));
    case BranchKind::JUMP_INDIRECT:
      return on_jump(step, after_branch(place), true);
    case BranchKind::COND:
    case BranchKind::JUMP:
      if ((step.flags & flow::TAKEN) != 0) on_jump(step, after_branch(place), false);
      return;
    case BranchKind::SYSCALL:
      return on_leaf(step, after_branch(place), How::SYSCALL);
    case BranchKind::FAR_CALL:
    case BranchKind::VMEXIT:
      return on_leaf(step, after_branch(place), How::INTERRUPT);
    case BranchKind::SYSRET:
    case BranchKind::IRET:
    case BranchKind::FAR_RETURN:
      return on_kernel_return(step, after_branch(place));
    case BranchKind::ASYNC:
      return on_async(step, place);
    case BranchKind::TX_ABORT:
      return on_abort(step, place);
    case BranchKind::FAR_JUMP:
    case BranchKind::VMENTRY:
    case BranchKind::UNKNOWN:
      return;
  }
}

// What is known of a frame by its function.
std::uint16_t StackMachine::open_flags(const EdgeFacts& edge) noexcept {
  unsigned open = 0;
  if (edge.is(CODE_STUB)) open |= OPEN_STUB;
  if (edge.is(CODE_SETJMP)) open |= OPEN_SETJMP;
  if (edge.is(CODE_RESOLVER)) open |= OPEN_RESOLVER;
  if (edge.is(CODE_SWITCH)) open |= OPEN_SWITCH;
  if (edge.is(CODE_LEAVE)) open |= OPEN_LEAVE;
  return static_cast<std::uint16_t>(open);
}

void StackMachine::on_call(const Step& step, const Place& after) {
  if (stack().empty()) return;
  OpenFrame frame;
  frame.how = How::CALL;
  frame.flags = FRAME_EXACT | FRAME_BEGIN_SEEN | FRAME_CALL;
  frame.call_ip = step.from_ip;
  frame.entry_ip = step.to_ip;
  if ((step.flags & flow::IN_TX) != 0) frame.flags |= std::uint16_t{FRAME_IN_TX};
  if (step.to_known()) {
    const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
    if (edge.next == step.to_ip) return;  // reads its own address
    frame.return_ip = edge.next;
    frame.function = edge.function;
    frame.flags |= std::uint16_t{FRAME_ENTRY};
    frame.open |= open_flags(edge);
    if (edge.is(EDGE_INNER) && !edge.is(CODE_ENTRY)) frame.open |= std::uint16_t{OPEN_INNER};
  } else {
    frame.return_ip = facts_.end_of(step.from_ip);
  }
  if (frame.return_ip != 0) frame.flags |= std::uint16_t{FRAME_RETURN};
  push(frame, after);
}

void StackMachine::on_jump(const Step& step, const Place& after, bool indirect) {
  if (stack().empty() || !step.to_known()) return;
  const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
  if ((stack().top().open & OPEN_STUB) != 0) return leave_stub(edge);
  if (edge.is(EDGE_INNER)) return;
  if (indirect && (stack().top().open & OPEN_SWITCH) != 0) return switch_stack(step, after);
  if (indirect && (stack().top().open & OPEN_RESOLVER) != 0) return tail(step, edge, after);
  if (edge.is(EDGE_TAIL) && edge.function != stack().top().function) {
    if (indirect && go_below(step, after, true)) return;
    return tail(step, edge, after);
  }
  if (!indirect || edge.function == stack().top().function) return;
  if (edge.is(EDGE_TAIL) || go_below(step, after, false)) return;
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
  if (resolved) {
    frame.how = top.how;  // the function that the stub was for
    frame.call_ip = top.call_ip;
  }
  if (resolved || tails_ == Tails::REPLACED || frame.tails > kMostTails) {
    frame.tails = top.tails;
    frame.open |= static_cast<std::uint16_t>(top.open & OPEN_KERNEL);
    stack().pop(EndHow::TAIL, after);
  }
  push(frame, after);
}

}  // namespace ptkit::calls
