#include "tables/calls/stack/stack_machine.h"

#include "tables/columns/request.h"

namespace ptkit::tables::calls {

using flow::BranchKind;

namespace {

// Of a branch, or of a mark.
[[nodiscard]] std::uint8_t kind_of(const WaitingRow& row) noexcept {
  if (row.kind == WaitingRow::Kind::ENABLED) return tables::columns::MARK_ENABLED;
  if (row.kind == WaitingRow::Kind::DISABLED) return tables::columns::MARK_DISABLED;
  if (row.kind == WaitingRow::Kind::LIMIT) return tables::columns::MARK_LIMIT;
  return static_cast<std::uint8_t>(row.step.kind);
}

}  // namespace

void StackMachine::on_branch(const BranchStep& step) {
  if (waiting_.is_open()) return wait({step, WaitingRow::Kind::BRANCH});
  const StreamPosition position = current_.local(step.position);
  stack().off_cpu().enable(position);
  current_.follow_code(position);
  if (current_.in_leaf()) {  // branch records do not tell where it goes on
    stack().pop(CallEnd::RETURN, position);
    inlined_.drop_run();
  }
  if (step.from_known()) current_.ensure_frame(step.from_ip, position);
  if (current_.code().inlines() != nullptr) inlined_.run_to_branch(step);
  apply_branch(step, position);
}

void StackMachine::apply_branch(const BranchStep& step, const StreamPosition& position) {
  switch (step.kind) {
    case BranchKind::CALL:
    case BranchKind::CALL_INDIRECT:
      return near_.on_call(step, after_branch(position));
    case BranchKind::RETURN:
      return near_.on_return(step, after_branch(position));
    case BranchKind::JUMP_INDIRECT:
      return near_.on_jump(step, after_branch(position), true);
    case BranchKind::COND:
    case BranchKind::JUMP:
      if ((step.flags & flow::TAKEN) != 0) near_.on_jump(step, after_branch(position), false);
      return;
    case BranchKind::SYSCALL:
      return far_.on_leaf(step, after_branch(position), CallKind::SYSCALL);
    case BranchKind::FAR_CALL:
      return far_.on_far_call(step, after_branch(position));
    case BranchKind::VMEXIT:
      return far_.on_leaf(step, after_branch(position), CallKind::INTERRUPT);
    case BranchKind::SYSRET:
      return far_.on_kernel_return(step, after_branch(position));
    case BranchKind::IRET:
    case BranchKind::FAR_RETURN:
      return far_.on_far_return(step, after_branch(position));
    case BranchKind::ASYNC:
      return far_.on_async(step, position);
    case BranchKind::TX_ABORT:
      return far_.on_abort(step, position);
    case BranchKind::FAR_JUMP:
      return far_.on_far_jump(step, after_branch(position));
    case BranchKind::VMENTRY:
    case BranchKind::UNKNOWN:
      return;
  }
}

void StackMachine::on_enabled(std::uint64_t ip, const StreamPosition& at) {
  BranchStep step;
  step.position = at;
  step.to_ip = ip;
  step.flags = flow::TO_KNOWN;
  if (waiting_.is_open()) return wait({step, WaitingRow::Kind::ENABLED});
  inlined_.end_run(at);
  inlined_.begin_run(ip, at);
  const StreamPosition position = current_.local(at);
  stack().off_cpu().enable(position);
  current_.follow_code(position);
  far_.on_enabled(step, position);
}

void StackMachine::on_status(std::uint64_t ip, const StreamPosition& at) {
  if (waiting_.is_open()) return;
  if (!inlined_.has_run()) inlined_.begin_run(ip, at);
  stack().off_cpu().enable(at);
  if (!stack().empty()) return;
  const StreamPosition position = current_.local(at);
  current_.follow_code(position);
  current_.ensure_frame(ip, position);
}

void StackMachine::on_disabled(const StreamPosition& position) {
  if (waiting_.is_open()) {
    BranchStep step;
    step.position = position;
    return wait({step, WaitingRow::Kind::DISABLED});
  }
  inlined_.end_run(position);
  stack().off_cpu().disable(position);
}

void StackMachine::on_gap(const StreamPosition& last, const StreamPosition& position) {
  decide_open();
  inlined_.end_run(position);
  threads_.cut(last, position);
}

void StackMachine::on_owner(const Owner& owner, const StreamPosition& position) {
  if (threads_.is_current(owner)) return;
  decide_open();
  if (!threads_.is_left()) on_leave(position);
  threads_.enter(owner, position);
}

void StackMachine::on_leave(const StreamPosition& position) {
  decide_open();
  inlined_.pause_run(position);
  threads_.leave(position);
}

// `step` returns from the function that switches, on the stack of `owner`.
void StackMachine::on_task_switch(const BranchStep& step, const Owner& owner) {
  decide_open();
  if (const std::size_t size = threads_.above_scheduler(); size > 1) {
    const bool ends = !threads_.is_left() && (stack().at(size - 2).open & OPEN_TASK_END) != 0;
    if (ends) current_.end_thread(current_.local(step.position));
  }
  if (current_.code().inlines() != nullptr) inlined_.run_to_branch(step);
  on_owner(owner, step.position);
  const StreamPosition position = current_.local(step.position);
  stack().off_cpu().enable(position);
  current_.follow_code(position);
  const StreamPosition after = after_branch(position);
  if (!step.to_known()) return near_.on_return(step, after);
  CodeFacts& facts = current_.code().facts();
  if (facts.at(step.to_ip).is(CODE_ENTRY)) current_.end_thread(position);  // ret_from_fork(): a new thread
  if (stack().empty()) return current_.ensure_frame(step.to_ip, after);
  if (stack().top().returns_to(step.to_ip)) return current_.end_call(step.to_ip, after);
  const std::size_t size = threads_.above_scheduler();
  const bool was_untraced = size != 0 && stack().at(size - 1).function == facts.at(step.to_ip).function;
  if (!was_untraced) return near_.on_return(step, after);
  stack().pop_to(size, CallEnd::RETURN, position, false);  // it was left while packets were disabled
}

// Functions above the scheduler have returned while packets were disabled, and others have been called.
void StackMachine::on_task_enabled(std::uint64_t ip, const StreamPosition& at, const Owner& owner) {
  decide_open();
  inlined_.end_run(at);
  inlined_.begin_run(ip, at);
  on_owner(owner, at);
  const StreamPosition position = current_.local(at);
  stack().off_cpu().enable(position);
  current_.follow_code(position);
  current_.thread().off = Thread::Off::NONE;
  if (stack().empty()) return current_.ensure_frame(ip, position);
  if (const std::size_t size = threads_.above_scheduler(); size != 0)
    stack().pop_to(size, CallEnd::RETURN, position, false);
  OpenFrame frame = current_.frame_within(CallKind::RESUMED, current_.code().facts().at(ip));
  current_.push(frame, position);
}

void StackMachine::on_limit(std::size_t number, const StreamPosition& position) {
  if (waiting_.is_open()) {
    BranchStep step;
    step.position = position;
    step.to_ip = number;
    return wait({step, WaitingRow::Kind::LIMIT});
  }
  if (number == 0) {
    if (!threads_.is_left()) inlined_.pause_run(position);
    return threads_.begin_window(position);
  }
  current_.ids().is_ending = true;
  finish(position);
  has_ended_ = true;
}

void StackMachine::finish(const StreamPosition& position) {
  decide_open();
  if (!threads_.is_left()) on_leave(position);
  threads_.finish(position);
}

void StackMachine::wait(const WaitingRow& row) {
  if (waiting_.add(row)) decide();
}

// Goes to the candidate that fits, and on from there.
void StackMachine::decide() {
  const std::vector<WaitingRow> rows = suspended_.decide();
  std::size_t left = rows.size();
  for (const WaitingRow& row : rows) {
    waiting_.set_replayed(--left);
    if (probe_ != nullptr) probe_->before_row(row.step, kind_of(row), *this, current_.owner());
    apply(row);
  }
}

// A row that has waited.
void StackMachine::apply(const WaitingRow& row) {
  if (has_ended_) return;
  if (row.kind == WaitingRow::Kind::LIMIT) {
    on_limit(static_cast<std::size_t>(row.step.to_ip), row.step.position);
  } else if (row.kind == WaitingRow::Kind::ENABLED) {
    on_enabled(row.step.to_ip, row.step.position);
  } else if (row.kind == WaitingRow::Kind::DISABLED) {
    on_disabled(row.step.position);
  } else {
    on_branch(row.step);
  }
}

StackMachine::OpenFrames StackMachine::open_frames() const noexcept {
  OpenFrames sum;
  const auto add = [&sum](const ThreadStack& stack) {
    sum.frames += stack.size() + stack.inlined_size();
    sum.bytes += stack.bytes();
  };
  for (const auto& [key, thread] : threads_.state().threads) add(thread->stack);
  for (const SuspendedStack& one : suspended_.state().stacks) add(one.thread->stack);
  return sum;
}

}  // namespace ptkit::tables::calls
