#include "flow/walk/walker.h"

#include <algorithm>
#include <vector>

namespace ptkit::flow {

using base::Status;
using code::insn::InsnClass;
using code::insn::InsnKind;

namespace {

bool is_far(InsnClass cls) noexcept { return cls >= InsnClass::FAR_CALL && cls <= InsnClass::FAR_JUMP; }

bool is_vm_entry(InsnKind kind) noexcept { return kind == InsnKind::VMLAUNCH || kind == InsnKind::VMRESUME; }

bool is_call(BranchKind kind) noexcept {
  switch (kind) {
    case BranchKind::CALL:
    case BranchKind::CALL_INDIRECT:
    case BranchKind::FAR_CALL:
    case BranchKind::SYSCALL:
    case BranchKind::VMENTRY:
    case BranchKind::VMEXIT:
      return true;
    default:
      return false;
  }
}

// Kinds of searches, for FailedSearches.
constexpr unsigned kToIp = 1;
constexpr unsigned kToLeave = 2;
constexpr unsigned kToInsn = 3;  // and one for each BindingInsn

InsnKinds binding_kinds(BindingInsn insn_kind) noexcept {
  InsnKinds kinds;
  if (insn_kind == BindingInsn::PTWRITE) kinds.add(InsnClass::PTWRITE, InsnKind::OTHER);
  for (unsigned i = 0; i <= static_cast<unsigned>(InsnKind::POPF); ++i) {
    const BlockInsn insn{1, InsnClass::OTHER, static_cast<InsnKind>(i)};
    if (is_binding_insn(insn, insn_kind)) kinds.add(insn.cls, insn.kind);
  }
  return kinds;
}

WalkGoal ip_goal(std::uint64_t ip) noexcept { return {StraightGoal(ip), kToIp}; }

WalkGoal insn_goal(BindingInsn insn_kind) noexcept {
  return {StraightGoal(binding_kinds(insn_kind)), kToInsn + static_cast<unsigned>(insn_kind)};
}

// To MOV CR3, or a branch out of the filter ranges.
WalkGoal leave_goal() noexcept { return {StraightGoal(binding_kinds(BindingInsn::CR3_WRITE)), kToLeave}; }

// The block without references to others.
BasicBlock alone(const BasicBlock& block) noexcept {
  BasicBlock out = block;
  out.next_block = nullptr;
  out.target_block = nullptr;
  return out;
}

}  // namespace

bool is_binding_insn(const BlockInsn& insn, BindingInsn insn_kind) noexcept {
  const InsnKind kind = insn.kind;
  switch (insn_kind) {
    case BindingInsn::PIP:
      return kind == InsnKind::MOV_CR3 || is_vm_entry(kind) || is_far(insn.cls);
    case BindingInsn::VMCS:
      return kind == InsnKind::VMPTRLD || is_vm_entry(kind) || is_far(insn.cls);
    case BindingInsn::PTWRITE:
      return insn.cls == InsnClass::PTWRITE;
    case BindingInsn::IRET:
      return kind == InsnKind::IRET || kind == InsnKind::SYSRET || kind == InsnKind::SYSEXIT ||
             kind == InsnKind::ERETS || kind == InsnKind::ERETU;
    case BindingInsn::UIRET:
      return kind == InsnKind::UIRET;
    case BindingInsn::VMENTRY:
      return is_vm_entry(kind);
    case BindingInsn::SWINT:
      return kind == InsnKind::INT || kind == InsnKind::INT3 || kind == InsnKind::INT1 ||
             kind == InsnKind::INTO;
    case BindingInsn::SYSCALL:
      return kind == InsnKind::SYSCALL || kind == InsnKind::SYSENTER;
    case BindingInsn::CR3_WRITE:
      return kind == InsnKind::MOV_CR3;
  }
  return false;
}

WalkState Walker::state() const {
  WalkState out = state_;
  out.branch.reset();
  if (at_end_) out.branch = alone(*block_);
  return out;
}

void Walker::set_state(const WalkState& state) {
  state_ = state;
  bits_left_ = 0;
  at_end_ = state.branch.has_value();
  block_ = at_end_ ? &*state_.branch : nullptr;
}

void Walker::set_code(const code::image::CodeView& view, code::insn::ExecMode mode) {
  if (cache_ != nullptr && &cache_->view() == &view && cache_->mode() == mode) return;
  // A branch that waits for its packet keeps the code that executed, but leads into the new code.
  keep_branch();
  if (!at_end_) state_.binding.reset();
  filter_.enter(view.space());
  cache_ = &source_.of(view, mode);
}

// Afterwards nothing refers to blocks of the cache, and the position is the same.
void Walker::keep_branch() noexcept {
  if (!at_end_) {
    block_ = nullptr;
    return;
  }
  state_.branch = alone(*block_);
  block_ = &*state_.branch;
}

void Walker::forget_code() {
  keep_branch();
  source_.clear_last();
}

void Walker::emit_part(const BasicBlock& block, std::uint32_t count, std::uint32_t size) {
  if (count == 0) return;
  state_.binding.reset();
  instructions_ += count;
  if (state_.icnt) *state_.icnt += count;
  sink_.on_block(
      Block{state_.span, block.ip, cache_->insns(block).first(count), size, cache_->mode(), tx_flag()});
}

void Walker::follow_direct(BasicBlock& block) {
  emit_branch(block.branch, block.last_ip, block.target, kTakenBranch);
  if (block.pushes && keeps_calls_) state_.calls.call(block.next_ip);
  enter(cache_->target(block));
}

void Walker::emit_conditional(BasicBlock& block, bool taken) {
  if (taken) {
    emit_branch(BranchKind::COND, block.last_ip, block.target, kTakenBranch);
    enter(cache_->target(block));
  } else {
    emit_branch(BranchKind::COND, block.last_ip, block.next_ip, kBothKnown);
    enter(cache_->next(block));
  }
}

Status Walker::take_return(BasicBlock& block, bool bit) {
  at_end_ = true;
  // A compressed return has a taken bit.
  if (!bit) return Status::TNT_MISMATCH;
  if (state_.calls.empty()) return Status::RETURN_STACK_EMPTY;
  use_bit();
  const std::uint64_t target = state_.calls.return_by_tnt([this](std::uint64_t ip) { return plausible(ip); });
  emit_branch(BranchKind::RETURN, block.last_ip, target, kTakenBranch);
  enter(cache_->at(target));
  return Status::OK;
}

// Advances over the end of a block that needs no packet: JUMP, CALL or FALL. The block is emitted already.
Status Walker::step(BasicBlock& block) {
  if (block.end == Terminator::JUMP || block.end == Terminator::CALL) {
    follow_direct(block);
  } else {
    enter(cache_->next(block));
  }
  return Status::OK;
}

// First instruction of the block at or behind a multiple of 1 KiB, if it has one behind its begin. Searches
// go on there, so that those from different addresses come to the same blocks.
std::optional<std::uint64_t> Walker::common_start(const BasicBlock& block) const {
  constexpr std::uint64_t kStep = 1024;
  const std::uint64_t boundary = (block.ip / kStep + 1) * kStep;
  if (boundary - block.ip >= block.size) return std::nullopt;
  std::uint64_t at = block.ip;
  for (const BlockInsn& insn : cache_->insns(block)) {
    if (at >= boundary) return at;
    at += insn.size;
  }
  return std::nullopt;
}

// True if a block that has the goal is on the way of code that leads to no branch that needs a packet.
template <typename Found>
bool Walker::finds(const WalkGoal& goal, const Found& found) {
  FailedSearches& failed = cache_->failed_searches();
  SearchLimit limit;
  FailedSearch searched;
  std::optional<std::uint64_t> anchor;
  for (BasicBlock* at = &cache_->at(state_.ip); at->end != Terminator::FAIL;) {
    if (!anchor && FailedSearches::is_anchor(at->ip, limit.blocks())) {
      if (failed.find(at->ip, goal.kind, goal.straight.ip) != nullptr) return false;
      anchor = at->ip;
      limit = {};
    }
    if (found(*at)) return true;
    searched.pass(at->ip, at->ip + at->size);
    if (!limit.allows(at->count)) break;
    if (const std::optional<std::uint64_t> start = common_start(*at)) {
      at = &cache_->at(*start);
      continue;
    }
    const bool direct = at->end == Terminator::JUMP || at->end == Terminator::CALL;
    at = direct ? &cache_->target(*at) : &cache_->next(*at);
  }
  if (anchor) failed.add(*anchor, goal.kind, goal.straight.ip, searched);
  return false;
}

// Passes over straight code up to the goal, if no rows are made of its instructions.
void Walker::pass_straight(const StraightGoal& goal) {
  if (!sink_.takes_straight_code()) return;
  const StraightStep passed = cache_->pass_straight(state_.ip, goal);
  if (passed.insns == 0) return;
  add_emitted(passed.insns, state_.span.since);
  sink_.on_straight_code(state_.span, passed.insns);
  jump_to(passed.next);
}

// Whether a walk without packets may go on to a branch that needs a packet, or to a block that has the goal
// before it. A walk that comes to an IP again never ends. A long walk looks ahead: rows of code that leads
// nowhere are given for WalkGuard::kSure instructions. `fell`: no branch led here. `goal` makes the WalkGoal.
template <typename Goal, typename Found>
Status Walker::bound(WalkGuard& guard, bool fell, const Goal& goal, const Found& found) {
  if (guard.loops(state_.ip)) return Status::INFINITE_LOOP;
  if (!guard.is_long(instructions_)) return Status::OK;
  if (guard.asks(instructions_) && sink_.cancelled()) return Status::INTERRUPTED;
  if (cache_->too_big()) forget_code();
  if (guard.looks_ahead()) {
    const CodeEnd end = cache_->end_of(state_.ip);
    if (end.status != Status::OK && !finds(goal(), found)) {
      if (end.status == Status::NO_CODE || end.status == Status::BAD_INSN) jump_to(end.ip);
      return end.status;
    }
  }
  if (fell) pass_straight(goal().straight);
  return Status::OK;
}

Status Walker::bound(WalkGuard& guard, bool fell) {
  return bound(
      guard, fell, [] { return WalkGoal(); }, [](const BasicBlock&) { return false; });
}

Status Walker::use_bits() {
  WalkGuard guard = this->guard();
  while (bits_left_ != 0) {
    BasicBlock& here = block();
    if (here.end == Terminator::FAIL) return here.failure;
    if (!at_end_) emit_block(here);
    const bool bit = (bits_ & 1U) != 0;
    const bool fell = here.end == Terminator::FALL;
    switch (here.end) {
      case Terminator::COND:
        use_bit();
        emit_conditional(here, bit);
        guard = this->guard();
        break;
      case Terminator::RETURN:
        if (!return_compression_) {
          at_end_ = true;
          return Status::OK;
        }
        if (const Status status = take_return(here, bit); status != Status::OK) return status;
        guard = this->guard();
        break;
      case Terminator::INDIRECT:
      case Terminator::FAR:
        at_end_ = true;
        return Status::OK;
      default:
        if (const Status status = step(here); status != Status::OK) return status;
        if (const Status status = bound(guard, fell); status != Status::OK) return status;
        break;
    }
  }
  return Status::OK;
}

Status Walker::take_bits(std::uint64_t bits, unsigned count) {
  bits_ = bits;
  bits_left_ = count;
  first_bit_waits_ = state_.span.before_first_bit = no_bit_used_;
  no_bit_used_ = false;
  return use_bits();
}

Status Walker::walk_to_decision() {
  WalkGuard guard = this->guard();
  while (!at_end_) {
    BasicBlock& here = block();
    if (here.end == Terminator::FAIL) return here.failure;
    emit_block(here);
    if (here.end != Terminator::JUMP && here.end != Terminator::CALL && here.end != Terminator::FALL) {
      at_end_ = true;
      return Status::OK;
    }
    const bool fell = here.end == Terminator::FALL;
    if (const Status status = step(here); status != Status::OK) return status;
    if (const Status status = bound(guard, fell); status != Status::OK) return status;
  }
  return Status::OK;
}

Status Walker::take_target(std::uint64_t ip, bool deferred) {
  if (const Status status = walk_to_decision(); status != Status::OK) return status;
  BasicBlock& here = *block_;
  if (here.end == Terminator::COND) return Status::TNT_MISMATCH;
  // The branch generated the TIP, unless the TIP was deferred.
  if (bits_left_ == 0 && !deferred) state_.span.since = state_.span.offset;
  emit_branch(here.branch, here.last_ip, ip, kTakenBranch);
  if (here.pushes && keeps_calls_) state_.calls.call(here.next_ip);
  target_was_near_ = here.end == Terminator::INDIRECT;
  if (here.end == Terminator::RETURN) state_.calls.return_by_tip();
  enter(cache_->at(ip));
  return bits_left_ == 0 ? Status::OK : use_bits();
}

// Number of the block's instructions before `ip`, if that is one of them.
std::optional<std::uint32_t> Walker::count_to(const BasicBlock& block, std::uint64_t ip) const {
  if (ip - block.ip >= block.size) return std::nullopt;  // also if ip < block.ip
  std::uint64_t at = block.ip;
  std::uint32_t count = 0;
  for (const BlockInsn& insn : cache_->insns(block)) {
    if (at >= ip) break;
    at += insn.size;
    ++count;
  }
  if (at != ip) return std::nullopt;
  return count;
}

// Emits the part of the block before `ip`, if `ip` is one of its instructions.
bool Walker::part_to_ip(const BasicBlock& block, std::uint64_t ip) {
  const std::optional<std::uint32_t> count = count_to(block, ip);
  if (!count) return false;
  emit_part(block, *count, static_cast<std::uint32_t>(ip - block.ip));
  jump_to(ip);
  return true;
}

Status Walker::walk_to_ip(std::uint64_t ip) {
  if (at_end_) return block_->last_ip == ip ? Status::OK : Status::FUP_MISMATCH;
  WalkGuard guard = this->guard();
  while (state_.ip != ip) {
    BasicBlock& here = block();
    if (here.end == Terminator::FAIL) return here.failure;
    if (part_to_ip(here, ip)) return Status::OK;
    emit_block(here);
    if (here.end != Terminator::JUMP && here.end != Terminator::CALL && here.end != Terminator::FALL) {
      at_end_ = true;
      return Status::FUP_MISMATCH;
    }
    const bool fell = here.end == Terminator::FALL;
    if (const Status status = step(here); status != Status::OK) return status;
    if (state_.ip == ip) break;
    const auto goal = [ip] { return ip_goal(ip); };
    const auto is_there = [this, ip](const BasicBlock& block) { return count_to(block, ip).has_value(); };
    if (const Status status = bound(guard, fell, goal, is_there); status != Status::OK) return status;
  }
  return Status::OK;
}

// Emits the block up to and including its instruction at `at`. The position is then after that instruction,
// or at it if it is a branch.
void Walker::stop_after(const BasicBlock& block, std::uint32_t index, std::uint64_t at) {
  const BlockInsn found = cache_->insns(block)[index];
  const std::uint64_t after = at + found.size;
  emit_part(block, index + 1, static_cast<std::uint32_t>(after - block.ip));
  if (at == block.last_ip && block.end != Terminator::FALL) {
    at_end_ = true;
  } else {
    jump_to(at == block.last_ip ? block.next_ip : after);
  }
  state_.binding = {.insn = found, .ip = at};
}

bool Walker::has_binding_insn(const BasicBlock& block, BindingInsn insn_kind) const {
  const auto insns = cache_->insns(block);
  return std::any_of(insns.begin(), insns.end(),
                     [=](const BlockInsn& insn) { return is_binding_insn(insn, insn_kind); });
}

bool Walker::part_to_binding_insn(const BasicBlock& block, BindingInsn insn_kind) {
  std::uint64_t at = block.ip;
  std::uint32_t index = 0;
  for (const BlockInsn& insn : cache_->insns(block)) {
    if (is_binding_insn(insn, insn_kind)) {
      stop_after(block, index, at);
      return true;
    }
    at += insn.size;
    ++index;
  }
  return false;
}

Status Walker::walk_over() {
  if (at_end_) return Status::OK;
  const BasicBlock& here = block();
  if (here.end == Terminator::FAIL) return here.failure;
  stop_after(here, 0, here.ip);
  return Status::OK;
}

Status Walker::walk_to_binding_insn(BindingInsn insn_kind) {
  if (at_end_) return Status::TNT_MISMATCH;
  WalkGuard guard = this->guard();
  const auto goal = [insn_kind] { return insn_goal(insn_kind); };
  for (;;) {
    BasicBlock& here = block();
    if (here.end == Terminator::FAIL) return here.failure;
    if (part_to_binding_insn(here, insn_kind)) return Status::OK;
    emit_block(here);
    if (here.end != Terminator::JUMP && here.end != Terminator::CALL && here.end != Terminator::FALL) {
      at_end_ = true;
      return Status::TNT_MISMATCH;
    }
    const bool fell = here.end == Terminator::FALL;
    if (const Status status = step(here); status != Status::OK) return status;
    const auto has_one = [=, this](const BasicBlock& block) { return has_binding_insn(block, insn_kind); };
    if (const Status status = bound(guard, fell, goal, has_one); status != Status::OK) return status;
  }
}

Status Walker::walk_count(std::uint64_t count) {
  WalkGuard guard = this->guard();
  while (count != 0) {
    if (at_end_) return Status::TNT_MISMATCH;
    BasicBlock& here = block();
    if (here.end == Terminator::FAIL) return here.failure;
    if (count < here.count) {
      std::uint64_t at = here.ip;
      for (const BlockInsn& insn : cache_->insns(here).first(static_cast<std::size_t>(count)))
        at += insn.size;
      emit_part(here, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(at - here.ip));
      jump_to(at);
      return Status::OK;
    }
    count -= here.count;
    emit_block(here);
    if (here.end != Terminator::JUMP && here.end != Terminator::CALL && here.end != Terminator::FALL) {
      at_end_ = true;
    } else {
      const bool fell = here.end == Terminator::FALL;
      if (const Status status = step(here); status != Status::OK) return status;
      if (guard.loops(state_.ip)) return Status::INFINITE_LOOP;
      if (guard.asks(instructions_) && sink_.cancelled()) return Status::INTERRUPTED;
      if (!fell || !guard.is_long(instructions_)) continue;
      const std::uint64_t before = instructions_;
      StraightGoal goal;
      goal.most = count;
      pass_straight(goal);
      count -= instructions_ - before;
    }
  }
  return Status::OK;
}

bool leaves_filter(const BasicBlock& block, const AddressFilter& filter) noexcept {
  return (block.end == Terminator::JUMP || block.end == Terminator::CALL) && filter.known() &&
         !filter.traced(block.target);
}

bool may_leave(const BasicBlock& block, const std::uint64_t* ip, const AddressFilter& filter) noexcept {
  // Only far transfers change the privilege level or CR3.
  if (filter.absent()) return block.end == Terminator::FAR;
  return ip == nullptr || block.end != Terminator::COND || *ip == block.target || *ip == block.next_ip;
}

LeavingBranch leaving_branch(const BasicBlock& block, const std::uint64_t* ip,
                             const AddressFilter& filter) noexcept {
  LeavingBranch out;
  out.to = ip != nullptr ? *ip : 0;
  bool known = ip != nullptr;
  bool taken = true;
  if (block.end == Terminator::COND) {
    if (!known && filter.known() && filter.traced(block.next_ip) != filter.traced(block.target)) {
      // Packets are disabled because one of the two targets is out of the traced ranges (cases 7e and 7f of
      // the manual).
      out.to = filter.traced(block.next_ip) ? block.target : block.next_ip;
      known = true;
    }
    taken = known && out.to == block.target;
  }
  out.flags = FROM_KNOWN;
  if (known) out.flags |= TO_KNOWN;
  if (taken) out.flags |= TAKEN;
  out.resume_ip = is_call(block.branch) ? block.next_ip : 0;
  return out;
}

void Walker::leave_at_branch(const std::uint64_t* ip) {
  const BasicBlock& here = *block_;
  const LeavingBranch branch = leaving_branch(here, ip, filter_);
  emit_branch(here.branch, here.last_ip, branch.to, branch.flags);
  resume_ip_ = branch.resume_ip;
  left_by_near_branch_ = here.end != Terminator::FAR;
  jump_to(branch.to);
}

Status Walker::leave(const std::uint64_t* ip) {
  left_by_near_branch_ = false;
  WalkGuard guard = this->guard();
  const auto goal = [ip] { return ip != nullptr ? ip_goal(*ip) : leave_goal(); };
  while (!at_end_) {
    resume_ip_ = state_.ip;
    if (ip != nullptr && state_.ip == *ip) return Status::OK;
    BasicBlock& here = block();
    if (here.end == Terminator::FAIL) return here.failure;
    resume_ip_ = ip != nullptr ? *ip : 0;
    if (ip != nullptr ? part_to_ip(here, *ip) : part_to_binding_insn(here, BindingInsn::CR3_WRITE))
      return Status::OK;
    emit_block(here);
    const bool out = ip == nullptr && leaves_filter(here, filter_);
    const bool fell = here.end == Terminator::FALL;
    if (here.end != Terminator::JUMP && here.end != Terminator::CALL && here.end != Terminator::FALL) {
      at_end_ = true;
      break;
    }
    if (const Status status = step(here); status != Status::OK) return status;
    if (out) return Status::OK;
    if (ip != nullptr && state_.ip == *ip) continue;
    const auto may_be_left = [this, ip](const BasicBlock& block) {
      if (ip != nullptr) return count_to(block, *ip).has_value();
      return has_binding_insn(block, BindingInsn::CR3_WRITE) || leaves_filter(block, filter_);
    };
    if (const Status status = bound(guard, fell, goal, may_be_left); status != Status::OK) return status;
  }
  if (!may_leave(*block_, ip, filter_)) return Status::TNT_MISMATCH;
  leave_at_branch(ip);
  return Status::OK;
}

InsnKind Walker::kind_at(std::uint64_t ip) {
  const BasicBlock& found = cache_->at(ip);
  return found.count == 0 ? InsnKind::OTHER : cache_->insns(found).front().kind;
}

bool Walker::reaches(std::uint64_t from, std::uint64_t to, unsigned limit) {
  BasicBlock* at = &cache_->at(from);
  for (unsigned i = 0; i < limit && at->end != Terminator::FAIL; ++i) {
    if (at->ip == to) return true;
    std::uint64_t ip = at->ip;
    for (const BlockInsn& insn : cache_->insns(*at)) {
      if (ip == to) return true;
      ip += insn.size;
    }
    if (at->end == Terminator::JUMP || at->end == Terminator::CALL) {
      at = &cache_->target(*at);
    } else if (at->end == Terminator::FALL) {
      at = &cache_->next(*at);
    } else {
      return false;
    }
  }
  return at->ip == to;
}

const BasicBlock* Walker::only_indirect_from(std::uint64_t ip) {
  constexpr std::size_t kMostRuns = 128;
  std::vector<BasicBlock*> seen{&cache_->at(ip)};
  const BasicBlock* found = nullptr;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    BasicBlock& here = *seen[i];
    if (here.end == Terminator::FAIL) return nullptr;
    if (here.end == Terminator::RETURN || here.end == Terminator::INDIRECT || here.end == Terminator::FAR) {
      if (found != nullptr && found->last_ip != here.last_ip) return nullptr;
      found = &here;
      continue;
    }
    const auto visit = [&seen](BasicBlock& block) {
      if (std::find(seen.begin(), seen.end(), &block) == seen.end()) seen.push_back(&block);
    };
    if (here.end == Terminator::COND || here.end == Terminator::FALL) visit(cache_->next(here));
    if (here.end != Terminator::FALL) visit(cache_->target(here));
    if (seen.size() > kMostRuns) return nullptr;
  }
  return found;
}

}  // namespace ptkit::flow
