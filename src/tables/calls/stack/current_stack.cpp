#include "tables/calls/stack/current_stack.h"

namespace ptkit::tables::calls {

std::uint16_t kernel_open_flags(std::uint32_t code_flags) noexcept {
  unsigned open = 0;
  if ((code_flags & CODE_TASK_SWITCH) != 0) open |= OPEN_TASK_SWITCH;
  if ((code_flags & CODE_SCHEDULER) != 0) open |= OPEN_SCHEDULER;
  if ((code_flags & CODE_TASK_END) != 0) open |= OPEN_TASK_END;
  return static_cast<std::uint16_t>(open);
}

void CurrentCode::find(trace::SpaceId space, const StreamPosition& position) {
  const std::uint64_t tsc = position.time_known ? position.tsc : trace::kTscMin;
  const CodeVersion found = facts_.follow(space, tsc);
  if (inlines_ != nullptr) inlines_->follow(space, tsc);
  edges_.follow(found);
  version_ = found;
  is_known_ = true;
}

bool CurrentStack::is_bottom() const noexcept {
  const OpenFrame& top = stack().top();
  return (top.flags & FRAME_RETURN) == 0 && stack().size() == std::size_t{top.tails} + 1;
}

bool CurrentStack::is_unseen() const noexcept {
  const OpenFrame& top = stack().top();
  return stack().chain().how == CallKind::RESUMED && (top.flags & FRAME_RETURN) == 0 && !is_bottom();
}

OpenFrame CurrentStack::frame_at(CallKind how, std::uint64_t ip) const {
  OpenFrame frame;
  frame.how = how;
  frame.entry_ip = ip;
  frame.function = facts_.function_at(ip);
  frame.flags = FRAME_ENTRY | FRAME_EXACT;
  const CodeLocation code = facts_.at(ip);
  if (!code.is(CODE_KNOWN) || code.is(CODE_ENTRY)) frame.flags |= FRAME_BEGIN_SEEN;
  return frame;
}

OpenFrame CurrentStack::frame_within(CallKind how, const CodeLocation& location) const {
  OpenFrame frame;
  frame.how = how;
  frame.entry_ip = location.entry;
  frame.function = facts_.function_at(location.entry);
  if (location.is(CODE_KNOWN)) frame.flags = FRAME_ENTRY;
  return frame;
}

OpenFrame CurrentStack::outermost_frame(CallKind how, const CodeLocation& location) const {
  OpenFrame frame = frame_within(how, location);
  if (!location.is(CODE_KNOWN)) frame.function = unknown_function();
  frame.open = kernel_open_flags(location.flags);
  return frame;
}

std::uint32_t CurrentStack::unknown_function() const {
  return state_.owner.tid == trace::kNoId ? kUnknownFunction : facts_.function_of_thread(state_.owner.tid);
}

void CurrentStack::push(OpenFrame& frame, const StreamPosition& begin) {
  if (!has_room()) {
    BranchStep step;
    step.to_ip = frame.entry_ip;
    note(AnomalyKind::TOO_DEEP, step, begin);
    end_all(CallEnd::GAP, begin);
    stack().begin_segment(begin);
    frame.tails = 0;
  }
  frame.begin = begin;
  ++state_.search;
  static_cast<void>(stack().push(frame));
}

void CurrentStack::push_first(std::uint64_t ip, const StreamPosition& position) {
  if (!thread_->begun) {
    // Instructions before the first branch are of this frame.
    StreamPosition begin = position;
    begin.instructions = stack().bare_since().instructions;
    begin.stream_instructions = stack().bare_since().stream_instructions;
    begin.branches = stack().bare_since().branches;
    stack().begin_segment(begin);
  }
  const CodeLocation code = facts_.at(ip);
  const bool is_known = code.is(CODE_KNOWN);
  const bool begins = is_known && ip == code.entry;
  OpenFrame frame = outermost_frame(code.is(CODE_CLONE) ? CallKind::THREAD : CallKind::ROOT, code);
  if (begins) frame.flags |= FRAME_EXACT | FRAME_BEGIN_SEEN;
  if (is_known && !begins && !code.is(CODE_CLONE)) state_.has_unseen_stacks = true;
  const bool is_first = !thread_->begun && position.stream_instructions == 0 && (begins || !is_known);
  if (is_first) frame.open |= std::uint16_t{OPEN_FIRST};
  if (is_first && code.is(CODE_START)) frame.open |= std::uint16_t{OPEN_START};
  if (code.is(CODE_SWITCH)) frame.open |= std::uint16_t{OPEN_SWITCH};
  thread_->begun = true;
  push(frame, stack().bare_since());
}

void CurrentStack::push_unknown() {
  OpenFrame frame;
  frame.function = unknown_function();
  stack().begin_segment(stack().bare_since());
  push(frame, stack().bare_since());
}

void CurrentStack::end_all(CallEnd how, const StreamPosition& end) {
  while (!stack().empty()) stack().pop(how, end);
}

void CurrentStack::note(AnomalyKind kind, const BranchStep& step, const StreamPosition& position) {
  Anomaly anomaly;
  anomaly.position = position;
  anomaly.kind = kind;
  anomaly.from_ip = step.from_ip;
  anomaly.from_known = step.from_known();
  anomaly.to_ip = step.to_ip;
  anomaly.no_call_before = kind == AnomalyKind::RETURN_ELSEWHERE && !facts_.follows_call(step.to_ip);
  if (!stack().empty()) {
    const OpenFrame& top = stack().top();
    anomaly.frame_known = true;
    anomaly.frame = top.id;
    anomaly.depth = top.depth;
    anomaly.expected_known = (top.flags & FRAME_RETURN) != 0;
    anomaly.expected_ip = top.return_ip;
  }
  if (!state_.ids.is_before) sink_.on_anomaly(anomaly, state_.owner);
}

void CurrentStack::end_call(std::uint64_t to, const StreamPosition& after) {
  const bool is_setjmp = (stack().top().open & OPEN_SETJMP) != 0;
  stack().pop_chain(CallEnd::RETURN, after);
  ensure_frame(to, after);
  if (is_setjmp) stack().mark(to);
}

std::size_t CurrentStack::frame_returning_to(std::uint64_t ip) noexcept {
  constexpr std::uint64_t kAlways = 64;
  std::uint64_t left = kAlways + state_.search;
  for (std::size_t i = stack().size(); i-- > 0 && left-- > 0;) {
    if (i + kAlways < stack().size() && state_.search != 0) --state_.search;
    if (stack().at(i).returns_to(ip)) return i;
  }
  return kNoFrame;
}

bool CurrentStack::return_deeper(const BranchStep& step, const StreamPosition& after) {
  const std::size_t frame = frame_returning_to(step.to_ip);
  if (frame == kNoFrame) return false;
  note(AnomalyKind::SKIPPED_FRAMES, step, after);
  // Frames that jumped share the address: the innermost one is the one that returns.
  stack().doubt(frame + 1);
  stack().pop_to(frame + 1, CallEnd::UNWIND, after, false);
  end_call(step.to_ip, after);
  return true;
}

void CurrentStack::return_to_unseen(const BranchStep& step, const StreamPosition& after) {
  state_.has_unseen_stacks = true;
  OpenFrame caller = outermost_frame(CallKind::ROOT, facts_.at(step.to_ip));
  if (const auto continues = thread_->gap_frames.return_to(step.to_ip)) {
    caller.how = CallKind::RESUMED;
    caller.continues = *continues;
    caller.flags |= FRAME_CONTINUES;
  }
  stack().return_below(caller, after);
}

}  // namespace ptkit::tables::calls
