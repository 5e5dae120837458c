#include "tables/calls/task_switches.h"

#include <utility>

#include "base/addresses.h"
#include "tables/columns/request.h"

namespace ptkit::tables::calls {

using flow::BranchKind;

namespace {

[[nodiscard]] bool is_branch(const StreamRow& row) noexcept {
  return row.kind < tables::columns::MARK_ENABLED;
}
[[nodiscard]] bool is_note(const StreamRow& row) noexcept {
  return row.kind == tables::columns::MARK_LEAVE || row.kind == tables::columns::MARK_CONTEXT;
}
[[nodiscard]] bool is_kernel(std::uint64_t ip) noexcept { return ip >= base::kKernelHalf; }

// Notes of other tasks may stand for threads that are not named yet.
[[nodiscard]] bool names_thread(const Owner& owner) noexcept { return owner.tid > 0; }

[[nodiscard]] bool same_thread(const Owner& one, const Owner& other) noexcept {
  return one.pid == other.pid && one.tid == other.tid;
}

[[nodiscard]] bool leaves_kernel(const StreamRow& row) noexcept {
  return is_branch(row) && !row.step.to_known() &&
         (row.step.kind == BranchKind::SYSRET || row.step.kind == BranchKind::IRET);
}

// User code is executed from the row on, or was before it.
[[nodiscard]] bool is_user_code(const StreamRow& row) noexcept {
  const BranchStep& step = row.step;
  if (row.kind == tables::columns::MARK_ENABLED || row.kind == tables::columns::MARK_STATUS)
    return !is_kernel(step.to_ip);
  if (!is_branch(row)) return false;
  return leaves_kernel(row) || (step.from_known() && !is_kernel(step.from_ip)) ||
         (step.to_known() && !is_kernel(step.to_ip));
}

}  // namespace

void give_row(const StreamRow& row, bool changes_owner, StackMachine& machine) {
  const BranchStep& step = row.step;
  if (machine.has_ended()) return;
  if (row.kind == tables::columns::MARK_LIMIT)
    return machine.on_limit(static_cast<std::size_t>(step.to_ip), step.position);
  if (row.switches == StreamRow::Switch::RETURN) return machine.on_task_switch(step, row.owner);
  if (row.switches == StreamRow::Switch::ENABLED)
    return machine.on_task_enabled(step.to_ip, step.position, row.owner);
  if (row.begins_run || changes_owner) machine.on_owner(row.owner, step.position);
  if (is_branch(row)) return machine.on_branch(step);
  switch (static_cast<tables::columns::MarkKind>(row.kind)) {
    case tables::columns::MARK_ENABLED:
      return machine.on_enabled(step.to_ip, step.position);
    case tables::columns::MARK_STATUS:
      return machine.on_status(step.to_ip, step.position);
    case tables::columns::MARK_DISABLED:
      return machine.on_disabled(step.position);
    case tables::columns::MARK_LEAVE:
      return machine.on_leave(step.position);
    case tables::columns::MARK_CONTEXT:
      return machine.on_owner(row.owner, step.position);
    case tables::columns::MARK_GAP:
      return machine.on_gap(row.before, step.position);
    case tables::columns::MARK_LIMIT:
      return;
  }
}

bool TaskSwitches::concerns(const StreamRow& row) const noexcept {
  if (is_note(row)) return true;
  return is_branch(row) && row.step.kind == BranchKind::RETURN && machine_.may_switch_task();
}

void TaskSwitches::pass(const StreamRow& row) {
  const BranchStep& step = row.step;
  const bool is_gap = row.kind == tables::columns::MARK_GAP;
  const bool has_target = !is_gap && (step.flags & flow::TO_KNOWN) != 0;
  if (has_target) ip_ = step.to_ip;
  if (leaves_kernel(row)) ip_ = 0;
  taker_.give(row);
}

void TaskSwitches::follow(StreamRow& row) {
  if (is_note(row)) return follow_note(row);
  if (is_waiting_) {
    if (!ends_wait(row)) return waiting_.push_back(row);
    resolve();
  }
  row.owner = owner_;
  if (row.kind == tables::columns::MARK_GAP) {
    pass(row);
    is_held_ = was_away_ = false;
    owner_ = noted_;
    return;
  }
  const bool returns = is_branch(row) && row.step.kind == BranchKind::RETURN && machine_.may_switch_task();
  if (returns) return switch_at(row, StreamRow::Switch::RETURN);
  const bool is_user = is_user_code(row);
  if ((is_held_ || was_away_) && !is_user && row.kind == tables::columns::MARK_ENABLED)
    return switch_at(row, StreamRow::Switch::ENABLED);
  if (is_user) {
    if (is_held_) row.owner = owner_ = noted_;
    is_held_ = was_away_ = false;
  }
  pass(row);
}

// A note in kernel code waits for the switch. Another address space of the same thread does not.
void TaskSwitches::follow_note(StreamRow& row) {
  const bool holds = is_waiting_ || is_held_ || is_kernel(ip_);
  if (row.kind == tables::columns::MARK_LEAVE) {
    if (!holds) pass(row);
    return;
  }
  noted_ = row.owner;
  if (is_waiting_) {
    if (names_thread(noted_)) resolve();
    return;
  }
  is_held_ = holds && !same_thread(noted_, owner_);
  was_away_ = was_away_ || is_held_;
  if (is_held_) return;
  owner_ = noted_;
  pass(row);
}

bool TaskSwitches::ends_wait(const StreamRow& row) const noexcept {
  if (waiting_.size() >= kMostRows || is_user_code(row) || row.kind == tables::columns::MARK_GAP) return true;
  if (row.kind == tables::columns::MARK_ENABLED) return true;
  const bool calls = is_branch(row) && row.step.kind == BranchKind::CALL;
  return calls && scheduler_ != 0 && row.step.to_ip == scheduler_;
}

// The thread is noted already, unless it is the one that goes, or none.
void TaskSwitches::switch_at(const StreamRow& row, StreamRow::Switch how) {
  waiting_.assign(1, row);
  waiting_.front().switches = how;
  is_waiting_ = true;
  scheduler_ = machine_.scheduler();
  if ((is_held_ || how == StreamRow::Switch::ENABLED) && names_thread(noted_)) resolve();
}

// The rows that wait are of the thread that was noted last.
void TaskSwitches::resolve() {
  std::vector<StreamRow> rows = std::exchange(waiting_, {});
  is_waiting_ = is_held_ = was_away_ = false;
  owner_ = noted_;
  rows.front().owner = owner_;
  pass(rows.front());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    rows[i].owner = owner_;
    take(rows[i]);
  }
}

void TaskSwitches::finish() {
  if (is_waiting_) resolve();
}

}  // namespace ptkit::tables::calls
