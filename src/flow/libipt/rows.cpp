#include "flow/libipt/rows.h"

#include "flow/code/block_cache.h"

namespace ptkit::flow::libipt {
namespace {

using code::insn::InsnClass;
using flow::BranchKind;
using flow::EventKind;

// A longer block of code without branches is split, to bound memory.
constexpr std::size_t kMaxBlockInsns = 4096;

std::uint64_t wrap(std::uint64_t ip, code::insn::ExecMode mode) noexcept {
  switch (mode) {
    case code::insn::ExecMode::BITS16:
      return ip & 0xffff;
    case code::insn::ExecMode::BITS32:
      return ip & 0xffffffff;
    default:
      return ip;
  }
}

}  // namespace

std::optional<BranchKind> branch_kind(const flow::BlockInsn& insn) noexcept {
  if (insn.cls == InsnClass::OTHER || insn.cls == InsnClass::PTWRITE) return std::nullopt;
  return flow::branch_kind(insn.cls, insn.kind);
}

void RowBuilder::on_instruction(const ExecutedInsn& step, flow::StreamSpan span) {
  resolve(step.ip);
  const bool joins = !insns_.empty() && block_.ip + block_.size == step.ip && block_.mode == step.mode &&
                     block_.flags == step.flags && insns_.size() < kMaxBlockInsns;
  if (!joins) {
    end_block();
    block_ = flow::Block{};
    block_.ip = step.ip;
    block_.mode = step.mode;
    block_.flags = step.flags;
  }
  block_.span = span;
  block_.size += step.insn.size;
  insns_.push_back(step.insn);
  last_ip_ = step.ip;
  const std::optional<BranchKind> kind = branch_kind(step.insn);
  if (!kind) return;
  end_block();
  flow::Branch branch;
  branch.span = span;
  branch.from_ip = step.ip;
  branch.kind = *kind;
  branch.flags = static_cast<std::uint8_t>(step.flags | flow::FROM_KNOWN);
  pending_ = Pending{branch, wrap(step.ip + step.insn.size, step.mode)};
}

void RowBuilder::on_event(const flow::Event& event) {
  end_block();
  resolve_by(event);
  if (event.kind == EventKind::TSX_ABORT && (event.flags & flow::EV_IP_KNOWN) != 0) aborted_at_ = event.ip;
  if (pending_) {
    waiting_.push_back(event);
    return;
  }
  emit_asynchronous(event);
  sink_.on_event(event);
}

// Events that resolve the target of the last branch, or discard the branch.
void RowBuilder::resolve_by(const flow::Event& event) {
  if (!pending_) return;
  const bool ip_known = (event.flags & flow::EV_IP_KNOWN) != 0;
  switch (event.kind) {
    case EventKind::DISABLED:
      resolve(ip_known ? std::optional(event.ip) : std::nullopt);
      return;
    case EventKind::ASYNC_DISABLED:
    case EventKind::ASYNC_BRANCH:
      resolve(event.payload);
      return;
    case EventKind::ENABLED:
      if ((event.flags & flow::EV_STATUS) == 0) drop();
      return;
    case EventKind::OVERFLOW:
      resolve(std::nullopt);
      return;
    default:
      return;
  }
}

void RowBuilder::emit_asynchronous(const flow::Event& event) {
  if (event.kind != EventKind::ASYNC_BRANCH && event.kind != EventKind::ASYNC_DISABLED) return;
  flow::Branch branch;
  branch.span = event.span;
  branch.from_ip = event.payload;
  branch.to_ip = event.ip;
  branch.kind = aborted_at_ == event.payload ? BranchKind::TX_ABORT : BranchKind::ASYNC;
  branch.flags = flow::FROM_KNOWN | flow::TAKEN;
  if ((event.flags & flow::EV_IP_KNOWN) != 0) branch.flags |= flow::TO_KNOWN;
  aborted_at_.reset();
  sink_.on_branch(branch);
}

void RowBuilder::drop() {
  end_block();
  pending_.reset();
  release_events();
}

void RowBuilder::end_block() {
  if (insns_.empty()) return;
  block_.insns = insns_;
  sink_.on_block(block_);
  insns_.clear();
}

// Without a target: the branch was executed, but its target was not traced.
void RowBuilder::resolve(std::optional<std::uint64_t> to) {
  if (!pending_) return;
  flow::Branch branch = pending_->branch;
  if (to) {
    branch.to_ip = *to;
    branch.flags |= flow::TO_KNOWN;
  }
  const bool falls_through = branch.kind == BranchKind::COND && to == pending_->next_ip;
  if (!falls_through) branch.flags |= flow::TAKEN;
  sink_.on_branch(branch);
  pending_.reset();
  release_events();
}

void RowBuilder::release_events() {
  for (const flow::Event& event : waiting_) {
    emit_asynchronous(event);
    sink_.on_event(event);
  }
  waiting_.clear();
}

}  // namespace ptkit::flow::libipt
