#include "tables/calls/stack/ambiguous_return.h"

namespace ptkit::tables::calls {

using flow::BranchKind;

bool WaitingRows::add(const WaitingRow& row) {
  const BranchKind kind = row.step.kind;
  const bool is_branch = row.kind == WaitingRow::Kind::BRANCH;
  // Jumps within functions come for inlined calls alone.
  const bool is_extra = code_.inlines() != nullptr && is_branch &&
                        (kind == BranchKind::JUMP || kind == BranchKind::COND) &&
                        !code_.edges().at(row.step.from_ip, row.step.to_ip).is(EDGE_TAIL);
  choice_.add(row, !is_extra);
  return (is_branch && !can_wait(row.step)) || choice_.is_known();
}

// Looks at a branch that waits. False: the rows after it cannot be understood without a decision.
bool WaitingRows::can_wait(const BranchStep& step) {
  if (code_.may_differ_at(step.position)) return false;
  const bool leaves = step.kind == BranchKind::RETURN || step.kind == BranchKind::JUMP_INDIRECT ||
                      step.kind == BranchKind::CALL || step.kind == BranchKind::CALL_INDIRECT;
  if (!leaves) {
    const bool is_jump = step.kind == BranchKind::JUMP || step.kind == BranchKind::COND;
    const bool is_leaf = step.kind == BranchKind::SYSCALL || step.kind == BranchKind::ASYNC;
    return is_jump || (is_leaf && !step.to_known());
  }
  if (!step.from_known() || !step.to_known()) return false;
  if (step.kind == BranchKind::RETURN) {
    choice_.returns(step.to_ip);
    return true;
  }
  const EdgeFacts& edge = code_.edges().at(step.from_ip, step.to_ip);
  if (edge.is(CODE_SWITCH | CODE_MCALL)) return false;
  if (step.kind == BranchKind::JUMP_INDIRECT) return edge.is(EDGE_INNER) || edge.is(EDGE_TAIL);
  if (edge.next != step.to_ip) choice_.call();
  return true;
}

}  // namespace ptkit::tables::calls
