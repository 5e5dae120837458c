#include "tables/calls/stack/stack_machine.h"

#include <algorithm>

#include "base/addresses.h"

namespace ptkit::tables::calls {

using flow::BranchKind;

namespace {

[[nodiscard]] std::uint16_t known(bool is_known, FrameFlag flag) noexcept {
  return is_known ? static_cast<std::uint16_t>(flag) : std::uint16_t{0};
}

}  // namespace

StackMachine::StackMachine(CodeFacts& facts, FrameSink& sink, Tails tails, MoreGroups* groups)
    : facts_(facts), sink_(sink), tails_(tails), groups_(groups), edges_(facts) {
  on_owner({}, {});
}

// The position with counts of the thread.
StreamPosition StackMachine::local(StreamPosition position) const noexcept {
  position.instructions =
      std::max(position.instructions, thread_->other_instructions) - thread_->other_instructions;
  position.branches = std::max(position.branches, thread_->other_branches) - thread_->other_branches;
  return position;
}

void StackMachine::find_code(const StreamPosition& position) {
  const std::uint64_t tsc = position.time_known ? position.tsc : trace::kTscMin;
  const CodeVersion found = facts_.follow(owner_.space, tsc);
  if (inlines_ != nullptr) inlines_->follow(owner_.space, tsc);
  if (!has_code_ || found.number != version_.number) edges_.clear();
  version_ = found;
  has_code_ = true;
}

OpenFrame StackMachine::frame_at(CallKind how, std::uint64_t ip) const {
  OpenFrame frame;
  frame.how = how;
  frame.entry_ip = ip;
  frame.function = facts_.function_at(ip);
  frame.flags = FRAME_ENTRY | FRAME_EXACT;
  const CodeLocation code = facts_.at(ip);
  if (!code.is(CODE_KNOWN) || code.is(CODE_ENTRY)) frame.flags |= FRAME_BEGIN_SEEN;
  return frame;
}

void StackMachine::push(OpenFrame& frame, const StreamPosition& begin) {
  if (stack().size() >= kMostFrames) {
    Step step;
    step.to_ip = frame.entry_ip;
    note(AnomalyKind::TOO_DEEP, step, begin);
    end_all(CallEnd::GAP, begin);
    stack().begin_segment(begin);
    frame.tails = 0;
  }
  frame.begin = begin;
  ++search_;
  static_cast<void>(stack().push(frame));
}

// The frame of code that runs without a call in the trace.
void StackMachine::ensure_frame(std::uint64_t ip, const StreamPosition& position) {
  if (!stack().empty()) return;
  if (!thread_->begun) {
    // What was executed before the first branch is of this frame.
    StreamPosition begin = position;
    begin.instructions = stack().bare_since().instructions;
    begin.stream_instructions = stack().bare_since().stream_instructions;
    begin.branches = stack().bare_since().branches;
    stack().begin_segment(begin);
  }
  const CodeLocation code = facts_.at(ip);
  OpenFrame frame = frame_at(CallKind::ROOT, code.entry);
  const bool begins = code.is(CODE_KNOWN) ? ip == code.entry : false;
  frame.flags = known(code.is(CODE_KNOWN), FRAME_ENTRY);
  if (begins) frame.flags |= FRAME_EXACT | FRAME_BEGIN_SEEN;
  if (!code.is(CODE_KNOWN)) frame.function = unknown_function();
  if (code.is(CODE_CLONE)) frame.how = CallKind::THREAD;
  if (code.is(CODE_KNOWN) && !begins && !code.is(CODE_CLONE)) has_unseen_stacks_ = true;
  frame.open = kernel_open_flags(code.flags);
  const bool is_first =
      !thread_->begun && position.stream_instructions == 0 && (begins || !code.is(CODE_KNOWN));
  if (is_first) frame.open |= std::uint16_t{OPEN_FIRST};
  if (is_first && code.is(CODE_START)) frame.open |= std::uint16_t{OPEN_START};
  if (code.is(CODE_SWITCH)) frame.open |= std::uint16_t{OPEN_SWITCH};
  thread_->begun = true;
  push(frame, stack().bare_since());
}

void StackMachine::note(AnomalyKind kind, const Step& step, const StreamPosition& position) {
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
  if (!ids_.is_before) sink_.on_anomaly(anomaly, owner_);
}

StackMachine::OpenFrames StackMachine::open_frames() const noexcept {
  OpenFrames sum;
  const auto add = [&sum](const ThreadStack& stack) {
    sum.frames += stack.size() + stack.inlined_size();
    sum.bytes += stack.bytes();
  };
  for (const auto& [key, thread] : threads_) add(thread->stack);
  for (const SuspendedStack& suspended : suspended_) add(suspended.thread->stack);
  return sum;
}

void StackMachine::end_all(CallEnd how, const StreamPosition& end) {
  while (!stack().empty()) stack().pop(how, end);
}

// Unknown threads of one address space are one thread: processes share no stacks.
StackMachine::Key StackMachine::key_of(const Owner& owner) noexcept {
  if (owner.tid != trace::kNoId) return {owner.pid, owner.tid};
  return {trace::kNoId, trace::kNoId - std::int64_t{owner.space}};
}

void StackMachine::on_owner(const Owner& owner, const StreamPosition& position) {
  if (thread_ != nullptr && owner == owner_ && !left_) return;
  decide_open();
  const bool known_thread = owner.tid != trace::kNoId;
  const Key key = key_of(owner);
  if (thread_ != nullptr && !left_) on_leave(position);
  left_ = false;
  auto& thread = threads_[key];
  const bool is_new = thread == nullptr;
  if (is_new) thread = std::make_unique<Thread>(ids_, groups_, sink_, owner);
  thread_ = thread.get();
  key_ = key;
  if (!is_new && position.time_known) end_moved(position.tsc + position.tsc_error / 2);
  stack().off_cpu().come_back(position);
  thread_->other_instructions = position.instructions - thread_->instructions;
  thread_->other_branches = position.branches - thread_->branches;
  if (!is_new && stack().owner().space != owner.space && known_thread) change_program(position);
  if (!thread_->executed) stack().set_owner(owner);
  owner_ = owner;
  has_code_ = false;
}

// exec(). Where the kernel is traced, its own frames end where it returns to the new program.
void StackMachine::change_program(const StreamPosition& position) {
  for (const SuspendedStack& suspended : suspended_) {
    if (suspended.key == key_) end_suspended(*suspended.thread, CallEnd::END, position);
  }
  std::erase_if(suspended_, [this](const SuspendedStack& suspended) { return suspended.key == key_; });
  if (stack().empty() || stack().top().entry_ip < base::kKernelHalf) return begin_program(position);
  if (!thread_->executed) thread_->executed = stack().owner();
}

// Another program: exec() ends all frames of the thread.
void StackMachine::begin_program(const StreamPosition& position) {
  thread_->executed.reset();
  if (stack().empty()) return;
  end_all(CallEnd::END, local(position));
  thread_->begun = false;
}

void StackMachine::on_leave(const StreamPosition& position) {
  decide_open();
  pause_run(position);
  const StreamPosition now = local(position);
  thread_->instructions = now.instructions;
  thread_->branches = now.branches;
  thread_->left = now;
  stack().off_cpu().leave(position);
  left_ = true;
}

void StackMachine::on_gap(const StreamPosition& last, const StreamPosition& position) {
  decide_open();
  end_run(position);
  const StreamPosition end = local(position);
  for (SuspendedStack& suspended : suspended_) suspended.thread->stack.doubt();  // they may have gone on
  has_unseen_stacks_ = true;
  stack().off_cpu().lose(last, position);
  thread_->gap_frames.clear();
  thread_->matched = 0;
  for (std::size_t i = 0; i < stack().size(); ++i) {
    const OpenFrame& open = stack().at(i);
    // Of frames that share a return address, the innermost one returns.
    if (open.tails != 0) thread_->gap_frames.pop_back();
    thread_->gap_frames.push_back({open.id, open.return_ip});
  }
  end_all(CallEnd::GAP, end);
  thread_->executed.reset();
  stack().set_owner(owner_);
  thread_->begun = false;
  thread_->off = Off::NONE;
}

void StackMachine::finish(const StreamPosition& position) {
  decide_open();
  if (!left_) on_leave(position);
  for (auto& [key, thread] : threads_) end_thread(*thread, position);
  for (SuspendedStack& suspended : suspended_) {
    if (shares_stacks_) suspended.thread->stack.doubt();  // it may have gone on elsewhere
    end_thread(*suspended.thread, position);
  }
}

void StackMachine::on_limit(std::size_t number, const StreamPosition& position) {
  if (ambiguous_.is_open()) {
    Step step;
    step.position = position;
    step.to_ip = number;
    return wait({step, Input::Kind::LIMIT});
  }
  if (number == 0) return begin_window(position);
  ids_.is_ending = true;
  finish(position);
  has_ended_ = true;
}

void StackMachine::begin_window(const StreamPosition& position) {
  if (!left_) pause_run(position);
  Thread* const current = thread_;
  const Owner owner = owner_;
  const Key key = key_;
  for (auto& [unused, thread] : threads_) {
    if (thread.get() != current || left_) begin_window_of(*thread, position);
  }
  for (SuspendedStack& suspended : suspended_) begin_window_of(*suspended.thread, position);
  thread_ = current;
  owner_ = owner;
  key_ = key;
  if (!left_) stack().begin_window(local(position));
  ids_.is_before = false;
  std::vector<std::uint64_t> open;
  for (const auto& [unused, thread] : threads_) thread->stack.add_ids(open);
  for (const SuspendedStack& suspended : suspended_) suspended.thread->stack.add_ids(open);
  std::ranges::sort(open);
  sink_.on_window(open, ids_.next);
}

// Of a thread or a stack that is not executed.
void StackMachine::begin_window_of(Thread& thread, const StreamPosition& position) {
  thread_ = &thread;
  owner_ = stack().owner();
  key_ = key_of(owner_);
  if (position.time_known) end_moved(position.tsc);
  StreamPosition begin = position;
  begin.instructions = thread.instructions;
  begin.branches = thread.branches;
  stack().begin_window(begin);
}

void StackMachine::end_thread(Thread& thread, const StreamPosition& position) {
  thread_ = &thread;
  owner_ = stack().owner();
  key_ = key_of(owner_);
  end_moved(UINT64_MAX);
  stack().off_cpu().finish(position);
  StreamPosition end = position;
  end.instructions = thread.instructions;
  end.branches = thread.branches;
  if (stack().empty() && end.instructions != stack().bare_since().instructions) push_unknown();
  end_all(CallEnd::END, end);
}

// Of the outermost frame of a thread.
std::uint32_t StackMachine::unknown_function() const {
  return owner_.tid == trace::kNoId ? kUnknownFunction : facts_.function_of_thread(owner_.tid);
}

// A frame for instructions of which the function is not known.
void StackMachine::push_unknown() {
  OpenFrame frame;
  frame.function = unknown_function();
  stack().begin_segment(stack().bare_since());
  push(frame, stack().bare_since());
}

void StackMachine::on_branch(const Step& step) {
  if (ambiguous_.is_open()) return wait({step, Input::Kind::BRANCH});
  const StreamPosition position = local(step.position);
  stack().off_cpu().enable(position);
  follow_code(position);
  if (in_leaf()) {  // branch records do not say where it goes on
    stack().pop(CallEnd::RETURN, position);
    run_.is_open = false;
  }
  if (step.from_known()) ensure_frame(step.from_ip, position);
  if (inlines_ != nullptr) run_to_branch(step);
  switch (step.kind) {
    case BranchKind::CALL:
    case BranchKind::CALL_INDIRECT:
      return on_call(step, after_branch(position));
    case BranchKind::RETURN:
      return on_return(step, after_branch(position));
    case BranchKind::JUMP_INDIRECT:
      return on_jump(step, after_branch(position), true);
    case BranchKind::COND:
    case BranchKind::JUMP:
      if ((step.flags & flow::TAKEN) != 0) on_jump(step, after_branch(position), false);
      return;
    case BranchKind::SYSCALL:
      return on_leaf(step, after_branch(position), CallKind::SYSCALL);
    case BranchKind::FAR_CALL:
      return on_far_call(step, after_branch(position));
    case BranchKind::VMEXIT:
      return on_leaf(step, after_branch(position), CallKind::INTERRUPT);
    case BranchKind::SYSRET:
      return on_kernel_return(step, after_branch(position));
    case BranchKind::IRET:
    case BranchKind::FAR_RETURN:
      return on_far_return(step, after_branch(position));
    case BranchKind::ASYNC:
      return on_async(step, position);
    case BranchKind::TX_ABORT:
      return on_abort(step, position);
    case BranchKind::FAR_JUMP:
      return on_far_jump(step, after_branch(position));
    case BranchKind::VMENTRY:
    case BranchKind::UNKNOWN:
      return;
  }
}

}  // namespace ptkit::tables::calls
