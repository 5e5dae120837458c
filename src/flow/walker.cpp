#include "flow/walker.h"

#include <algorithm>
#include <vector>

namespace ptkit::flow {

using base::Status;
using insn::InsnClass;
using insn::InsnKind;

namespace {

constexpr std::uint8_t kBoth = FROM_KNOWN | TO_KNOWN;
constexpr std::uint8_t kWent = FROM_KNOWN | TO_KNOWN | TAKEN;

// Finds a cycle in a walk that consumes no packets (Brent): such a walk depends on the IP alone, so an IP
// that comes again comes for ever. Long walks without one end with the WalkBudget.
class LoopGuard {
 public:
  explicit LoopGuard(std::uint64_t ip) noexcept : anchor_(ip) {}
  [[nodiscard]] bool loops(std::uint64_t ip) noexcept {
    if (ip == anchor_) return true;
    if (++steps_ == limit_) {
      anchor_ = ip;
      limit_ *= 2;
      steps_ = 0;
    }
    return false;
  }
  void restart(std::uint64_t ip) noexcept { *this = LoopGuard(ip); }

 private:
  std::uint64_t anchor_;
  std::uint64_t steps_ = 0;
  std::uint64_t limit_ = 2;
};

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

}  // namespace

AddressFilter::AddressFilter(const trace::Configuration& configuration) noexcept
    : ranges_(configuration.ranges) {
  for (const trace::AddressRange& range : ranges_) {
    if (range.kind != trace::RangeKind::OFF) known_ = true;
    if (range.kind == trace::RangeKind::FILTER) has_filter_ = true;
  }
}

bool AddressFilter::traced(std::uint64_t ip) const noexcept {
  bool inside = !has_filter_;
  for (const trace::AddressRange& range : ranges_) {
    if (range.kind == trace::RangeKind::OFF || ip < range.first || ip > range.last) continue;
    if (range.kind == trace::RangeKind::TRACE_STOP) return false;
    inside = true;
  }
  return inside;
}

bool is_anchor(const BlockInsn& insn, Anchor anchor) noexcept {
  const InsnKind kind = insn.kind;
  switch (anchor) {
    case Anchor::PIP:
      return kind == InsnKind::MOV_CR3 || is_vm_entry(kind) || is_far(insn.cls);
    case Anchor::VMCS:
      return kind == InsnKind::VMPTRLD || is_vm_entry(kind) || is_far(insn.cls);
    case Anchor::PTWRITE:
      return insn.cls == InsnClass::PTWRITE;
    case Anchor::IRET:
      return kind == InsnKind::IRET || kind == InsnKind::SYSRET || kind == InsnKind::SYSEXIT ||
             kind == InsnKind::ERETS || kind == InsnKind::ERETU;
    case Anchor::UIRET:
      return kind == InsnKind::UIRET;
    case Anchor::VMENTRY:
      return is_vm_entry(kind);
    case Anchor::SWINT:
      return kind == InsnKind::INT || kind == InsnKind::INT3 || kind == InsnKind::INT1 ||
             kind == InsnKind::INTO;
    case Anchor::SYSCALL:
      return kind == InsnKind::SYSCALL || kind == InsnKind::SYSENTER;
    case Anchor::CR3_WRITE:
      return kind == InsnKind::MOV_CR3;
  }
  return false;
}

void Walker::set_code(const image::CodeView& view, insn::ExecMode mode) {
  if (cache_ != nullptr && &cache_->view() == &view && cache_->mode() == mode) return;
  // A branch that waits for its packet was decoded as it was executed: it stays, but leads into the new code.
  keep_branch();
  if (!at_end_) anchor_known_ = false;
  cache_ = &caches_.of(view, mode);
}

// After this nothing refers to what the cache has, but execution stands where it stood.
void Walker::keep_branch() noexcept {
  if (!at_end_) {
    run_ = nullptr;
    return;
  }
  crossing_ = *run_;
  crossing_.next_run = nullptr;
  crossing_.target_run = nullptr;
  run_ = &crossing_;
}

void Walker::forget_code() {
  keep_branch();
  caches_.clear(*cache_);
}

void Walker::give_part(const Run& run, std::uint32_t count, std::uint32_t size) {
  if (count == 0) return;
  anchor_known_ = false;
  instructions_ += count;
  sink_.on_block(Block{place_, run.ip, cache_->insns(run).first(count), size, cache_->mode(), tx_flag()});
}

void Walker::follow_direct(Run& run) {
  give_branch(run.branch, run.last_ip, run.target, kWent);
  if (run.pushes) calls_.call(run.next_ip);
  enter(cache_->target(run));
}

void Walker::give_conditional(Run& run, bool taken) {
  if (taken) {
    give_branch(BranchKind::COND, run.last_ip, run.target, kWent);
    enter(cache_->target(run));
  } else {
    give_branch(BranchKind::COND, run.last_ip, run.next_ip, kBoth);
    enter(cache_->next(run));
  }
}

Status Walker::take_return(Run& run, bool bit) {
  at_end_ = true;
  // Only taken bits stand for compressed returns.
  if (!bit) return Status::TNT_MISMATCH;
  if (calls_.empty()) return Status::RETURN_STACK_EMPTY;
  use_bit();
  const std::uint64_t target = calls_.return_by_tnt([this](std::uint64_t ip) { return plausible(ip); });
  give_branch(BranchKind::RETURN, run.last_ip, target, kWent);
  enter(cache_->at(target));
  return Status::OK;
}

// Goes past the end of a run whose block was given and that needs no packet.
Status Walker::step(Run& run) {
  if (run.end == RunEnd::JUMP || run.end == RunEnd::CALL) {
    follow_direct(run);
  } else {
    enter(cache_->next(run));
  }
  return Status::OK;
}

Status Walker::use_bits() {
  budget_.add_bits(bits_left_);
  LoopGuard guard(ip_);
  while (bits_left_ != 0) {
    Run& here = run();
    if (here.end == RunEnd::FAIL) return here.failure;
    if (!at_end_) give_block(here);
    const bool bit = (bits_ & 1U) != 0;
    switch (here.end) {
      case RunEnd::COND:
        use_bit();
        give_conditional(here, bit);
        guard.restart(ip_);
        break;
      case RunEnd::RETURN:
        if (!return_compression_) {
          at_end_ = true;
          return Status::OK;
        }
        if (const Status status = take_return(here, bit); status != Status::OK) return status;
        guard.restart(ip_);
        break;
      case RunEnd::INDIRECT:
      case RunEnd::FAR:
        at_end_ = true;
        return Status::OK;
      default:
        if (const Status status = step(here); status != Status::OK) return status;
        if (guard.loops(ip_) || budget_.spent(instructions_)) return Status::INFINITE_LOOP;
        break;
    }
  }
  return Status::OK;
}

Status Walker::take_bits(std::uint64_t bits, unsigned count) {
  bits_ = bits;
  bits_left_ = count;
  first_bit_waits_ = place_.before_first_bit = no_bit_used_;
  no_bit_used_ = false;
  return use_bits();
}

Status Walker::walk_to_decision() {
  LoopGuard guard(ip_);
  while (!at_end_) {
    Run& here = run();
    if (here.end == RunEnd::FAIL) return here.failure;
    give_block(here);
    if (here.end != RunEnd::JUMP && here.end != RunEnd::CALL && here.end != RunEnd::FALL) {
      at_end_ = true;
      return Status::OK;
    }
    if (const Status status = step(here); status != Status::OK) return status;
    if (guard.loops(ip_) || budget_.spent(instructions_)) return Status::INFINITE_LOOP;
  }
  return Status::OK;
}

Status Walker::take_target(std::uint64_t ip, bool deferred) {
  if (const Status status = walk_to_decision(); status != Status::OK) return status;
  Run& here = *run_;
  if (here.end == RunEnd::COND) return Status::TNT_MISMATCH;
  // A TIP is made by its branch, unless it was deferred.
  if (bits_left_ == 0 && !deferred) place_.since = place_.offset;
  give_branch(here.branch, here.last_ip, ip, kWent);
  if (here.pushes) calls_.call(here.next_ip);
  target_was_near_ = here.end == RunEnd::INDIRECT;
  if (here.end == RunEnd::RETURN) calls_.return_by_tip();
  enter(cache_->at(ip));
  return bits_left_ == 0 ? Status::OK : use_bits();
}

// Gives the part of the run that lies before `ip`, if `ip` is one of its instructions.
bool Walker::part_to_ip(const Run& run, std::uint64_t ip) {
  if (ip - run.ip >= run.size) return false;  // also if ip < run.ip
  std::uint64_t at = run.ip;
  std::uint32_t count = 0;
  for (const BlockInsn& insn : cache_->insns(run)) {
    if (at >= ip) break;
    at += insn.size;
    ++count;
  }
  if (at != ip) return false;
  give_part(run, count, static_cast<std::uint32_t>(ip - run.ip));
  jump_to(ip);
  return true;
}

Status Walker::walk_to_ip(std::uint64_t ip) {
  if (at_end_) return run_->last_ip == ip ? Status::OK : Status::FUP_MISMATCH;
  LoopGuard guard(ip_);
  while (ip_ != ip) {
    Run& here = run();
    if (here.end == RunEnd::FAIL) return here.failure;
    if (part_to_ip(here, ip)) return Status::OK;
    give_block(here);
    if (here.end != RunEnd::JUMP && here.end != RunEnd::CALL && here.end != RunEnd::FALL) {
      at_end_ = true;
      return Status::FUP_MISMATCH;
    }
    if (const Status status = step(here); status != Status::OK) return status;
    if (ip_ != ip && (guard.loops(ip_) || budget_.spent(instructions_))) return Status::INFINITE_LOOP;
  }
  return Status::OK;
}

// Gives the run up to and including its instruction at `at`; execution stands behind that one, or at it if it
// is a branch.
void Walker::stop_behind(const Run& run, std::uint32_t index, std::uint64_t at) {
  const BlockInsn found = cache_->insns(run)[index];
  const std::uint64_t behind = at + found.size;
  give_part(run, index + 1, static_cast<std::uint32_t>(behind - run.ip));
  if (at == run.last_ip && run.end != RunEnd::FALL) {
    at_end_ = true;
  } else {
    jump_to(at == run.last_ip ? run.next_ip : behind);
  }
  anchor_known_ = true;
  anchor_insn_ = found;
  anchor_ip_ = at;
}

bool Walker::part_to_anchor(const Run& run, Anchor anchor) {
  std::uint64_t at = run.ip;
  std::uint32_t index = 0;
  for (const BlockInsn& insn : cache_->insns(run)) {
    if (is_anchor(insn, anchor)) {
      stop_behind(run, index, at);
      return true;
    }
    at += insn.size;
    ++index;
  }
  return false;
}

Status Walker::walk_over() {
  if (at_end_) return Status::OK;
  const Run& here = run();
  if (here.end == RunEnd::FAIL) return here.failure;
  stop_behind(here, 0, here.ip);
  return Status::OK;
}

Status Walker::walk_to_anchor(Anchor anchor) {
  if (at_end_) return Status::TNT_MISMATCH;
  LoopGuard guard(ip_);
  for (;;) {
    Run& here = run();
    if (here.end == RunEnd::FAIL) return here.failure;
    if (part_to_anchor(here, anchor)) return Status::OK;
    give_block(here);
    if (here.end != RunEnd::JUMP && here.end != RunEnd::CALL && here.end != RunEnd::FALL) {
      at_end_ = true;
      return Status::TNT_MISMATCH;
    }
    if (const Status status = step(here); status != Status::OK) return status;
    if (guard.loops(ip_) || budget_.spent(instructions_)) return Status::INFINITE_LOOP;
  }
}

Status Walker::walk_count(std::uint64_t count) {
  LoopGuard guard(ip_);
  while (count != 0) {
    if (at_end_) return Status::TNT_MISMATCH;
    Run& here = run();
    if (here.end == RunEnd::FAIL) return here.failure;
    if (count < here.count) {
      std::uint64_t at = here.ip;
      for (const BlockInsn& insn : cache_->insns(here).first(static_cast<std::size_t>(count)))
        at += insn.size;
      give_part(here, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(at - here.ip));
      jump_to(at);
      return Status::OK;
    }
    count -= here.count;
    give_block(here);
    if (here.end != RunEnd::JUMP && here.end != RunEnd::CALL && here.end != RunEnd::FALL) {
      at_end_ = true;
    } else {
      if (const Status status = step(here); status != Status::OK) return status;
      if (guard.loops(ip_) || budget_.spent(instructions_)) return Status::INFINITE_LOOP;
    }
  }
  return Status::OK;
}

bool leaves_filter(const Run& run, const AddressFilter& filter) noexcept {
  return (run.end == RunEnd::JUMP || run.end == RunEnd::CALL) && filter.known() && !filter.traced(run.target);
}

LeavingBranch leaving_branch(const Run& run, const std::uint64_t* ip, const AddressFilter& filter) noexcept {
  LeavingBranch out;
  out.to = ip != nullptr ? *ip : 0;
  bool known = ip != nullptr;
  bool taken = true;
  if (run.end == RunEnd::COND) {
    if (!known && filter.known() && filter.traced(run.next_ip) != filter.traced(run.target)) {
      // Packets went off because one way leads out of the traced ranges (the manual's cases 7e and 7f).
      out.to = filter.traced(run.next_ip) ? run.target : run.next_ip;
      known = true;
    }
    taken = known && out.to == run.target;
  }
  out.flags = FROM_KNOWN;
  if (known) out.flags |= TO_KNOWN;
  if (taken) out.flags |= TAKEN;
  out.resume_ip = is_call(run.branch) ? run.next_ip : 0;
  return out;
}

Status Walker::leave_at_branch(const std::uint64_t* ip) {
  const Run& here = *run_;
  const LeavingBranch branch = leaving_branch(here, ip, filter_);
  give_branch(here.branch, here.last_ip, branch.to, branch.flags);
  resume_ip_ = branch.resume_ip;
  jump_to(branch.to);
  return Status::OK;
}

Status Walker::leave(const std::uint64_t* ip) {
  LoopGuard guard(ip_);
  while (!at_end_) {
    resume_ip_ = ip_;
    if (ip != nullptr && ip_ == *ip) return Status::OK;
    Run& here = run();
    if (here.end == RunEnd::FAIL) return here.failure;
    resume_ip_ = ip != nullptr ? *ip : 0;
    if (ip != nullptr ? part_to_ip(here, *ip) : part_to_anchor(here, Anchor::CR3_WRITE)) return Status::OK;
    give_block(here);
    const bool out = ip == nullptr && leaves_filter(here, filter_);
    if (here.end != RunEnd::JUMP && here.end != RunEnd::CALL && here.end != RunEnd::FALL) {
      at_end_ = true;
      break;
    }
    if (const Status status = step(here); status != Status::OK) return status;
    if (out) return Status::OK;
    if ((ip == nullptr || ip_ != *ip) && (guard.loops(ip_) || budget_.spent(instructions_)))
      return Status::INFINITE_LOOP;
  }
  return leave_at_branch(ip);
}

InsnKind Walker::kind_at(std::uint64_t ip) {
  const Run& found = cache_->at(ip);
  return found.count == 0 ? InsnKind::OTHER : cache_->insns(found).front().kind;
}

bool Walker::reaches(std::uint64_t from, std::uint64_t to, unsigned limit) {
  Run* at = &cache_->at(from);
  for (unsigned i = 0; i < limit && at->end != RunEnd::FAIL; ++i) {
    if (at->ip == to) return true;
    std::uint64_t ip = at->ip;
    for (const BlockInsn& insn : cache_->insns(*at)) {
      if (ip == to) return true;
      ip += insn.size;
    }
    if (at->end == RunEnd::JUMP || at->end == RunEnd::CALL) {
      at = &cache_->target(*at);
    } else if (at->end == RunEnd::FALL) {
      at = &cache_->next(*at);
    } else {
      return false;
    }
  }
  return at->ip == to;
}

const Run* Walker::only_indirect_from(std::uint64_t ip) {
  constexpr std::size_t kMostRuns = 128;
  std::vector<Run*> seen{&cache_->at(ip)};
  const Run* found = nullptr;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    Run& here = *seen[i];
    if (here.end == RunEnd::FAIL) return nullptr;
    if (here.end == RunEnd::RETURN || here.end == RunEnd::INDIRECT || here.end == RunEnd::FAR) {
      if (found != nullptr && found->last_ip != here.last_ip) return nullptr;
      found = &here;
      continue;
    }
    const auto visit = [&seen](Run& run) {
      if (std::find(seen.begin(), seen.end(), &run) == seen.end()) seen.push_back(&run);
    };
    if (here.end == RunEnd::COND || here.end == RunEnd::FALL) visit(cache_->next(here));
    if (here.end != RunEnd::FALL) visit(cache_->target(here));
    if (seen.size() > kMostRuns) return nullptr;
  }
  return found;
}

}  // namespace ptkit::flow
