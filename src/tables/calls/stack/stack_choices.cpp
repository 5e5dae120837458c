// Choices between frames that control may have gone to: branches wait until the returns among them tell.
#include <algorithm>
#include <utility>

#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

using flow::BranchKind;

// `step` leads to one of the candidates, the most likely one first. Its position is that of the thread behind
// it.
void StackMachine::choose(std::vector<Candidate> candidates, const Step& step, Input::Kind kind) {
  ambiguous_.begin(std::move(candidates), {step, kind});
  if (replayed_ != 0) decide();  // each input waits once
}

void StackMachine::wait(const Input& input) {
  const BranchKind kind = input.step.kind;
  // Jumps within functions come for inlined calls alone.
  const bool is_extra = inlines_ != nullptr && input.kind == Input::Kind::BRANCH &&
                        (kind == BranchKind::JUMP || kind == BranchKind::COND) &&
                        !edges_.at(input.step.from_ip, input.step.to_ip).is(EDGE_TAIL);
  ambiguous_.add(input, !is_extra);
  const bool is_branch = input.kind == Input::Kind::BRANCH;
  if ((is_branch && !can_wait(input.step)) || ambiguous_.is_known()) decide();
}

// Looks at a branch that waits. False: what follows cannot be understood without a decision.
bool StackMachine::can_wait(const Step& step) {
  const StreamPosition& position = step.position;
  if (position.time_known && position.tsc >= version_.until) return false;  // the code may be another
  const bool leaves = step.kind == BranchKind::RETURN || step.kind == BranchKind::JUMP_INDIRECT ||
                      step.kind == BranchKind::CALL || step.kind == BranchKind::CALL_INDIRECT;
  if (!leaves) {
    const bool is_jump = step.kind == BranchKind::JUMP || step.kind == BranchKind::COND;
    const bool is_leaf = step.kind == BranchKind::SYSCALL || step.kind == BranchKind::ASYNC;
    return is_jump || (is_leaf && !step.to_known());
  }
  if (!step.from_known() || !step.to_known()) return false;
  if (step.kind == BranchKind::RETURN) {
    ambiguous_.returns(step.to_ip);
    return true;
  }
  const EdgeFacts& edge = edges_.at(step.from_ip, step.to_ip);
  if (edge.is(CODE_SWITCH | CODE_MCALL)) return false;
  if (step.kind == BranchKind::JUMP_INDIRECT) return edge.is(EDGE_INNER) || edge.is(EDGE_TAIL);
  if (edge.next != step.to_ip) ambiguous_.call();
  return true;
}

// Goes to the candidate that fits, or else to the most likely one, and on from there.
void StackMachine::decide() {
  const Input cause = ambiguous_.cause();
  const auto decision = ambiguous_.decide();
  const StreamPosition after = cause.step.position;
  if (cause.kind == Input::Kind::SWITCH) {
    const bool is_certain = decision.is_certain && !may_be_elsewhere();
    if (!is_certain && decision.number != Candidate::kUnknown)
      doubt_stacks(decision.others, cause.step, after);
    go_on_with(decision.number, cause.step, after);
  } else {
    if (!decision.is_certain) doubt_marked(decision.others, cause.step, after);
    leave_to_mark(decision.number, cause.step, after, decision.is_certain);
  }
  std::size_t left = decision.inputs.size();
  for (const Input& one : decision.inputs) {
    replayed_ = --left;
    if (probe_ != nullptr) probe_->before_row(one.step.position, *this, owner_);
    apply(one);
  }
}

// Any of the stacks may have gone on.
void StackMachine::doubt_stacks(const std::vector<Candidate>& stacks, const Step& step,
                                const StreamPosition& after) {
  note(AnomalyKind::UNDECIDED, step, after);
  for (const Candidate& one : stacks) {
    if (one.number() == Candidate::kSame) {
      stack().doubt();
    } else if (one.number() != Candidate::kUnknown) {
      suspended_[one.number()].thread->stack.doubt();
    }
  }
}

// longjmp() may have gone to any of the frames, and have ended those above them.
void StackMachine::doubt_marked(const std::vector<Candidate>& frames, const Step& step,
                                const StreamPosition& after) {
  note(AnomalyKind::UNDECIDED, step, after);
  std::size_t outermost = stack().size();
  bool may_leave = false;
  for (const Candidate& one : frames) {
    const MarkedFrame marked = MarkedFrame::of(one.number());
    if (marked.suspended == 0) {
      outermost = std::min(outermost, marked.frame + 1);
    } else {
      suspended_[marked.suspended - 1].thread->stack.doubt();
      may_leave = true;
    }
  }
  stack().doubt(may_leave ? 0 : outermost);
}

// An input that has waited.
void StackMachine::apply(const Input& input) {
  if (has_ended_) return;
  if (input.kind == Input::Kind::LIMIT) {
    on_limit(static_cast<std::size_t>(input.step.to_ip), input.step.position);
  } else if (input.kind == Input::Kind::ENABLED) {
    on_enabled(input.step.to_ip, input.step.position);
  } else if (input.kind == Input::Kind::DISABLED) {
    on_disabled(input.step.position);
  } else {
    on_branch(input.step);
  }
}

}  // namespace ptkit::tables::calls
