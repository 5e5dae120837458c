#include "flow/walk/route.h"

namespace ptkit::flow {

using base::Status;

namespace {

constexpr std::uint8_t kFell = FROM_KNOWN | TO_KNOWN;
constexpr std::uint8_t kLeft = FROM_KNOWN | TAKEN;

// True if execution usually returns to the next instruction.
bool is_system_call(const BasicBlock& block) noexcept {
  return block.end == Terminator::FAR &&
         (block.branch == BranchKind::SYSCALL || block.branch == BranchKind::FAR_CALL ||
          block.branch == BranchKind::VMEXIT);
}

bool is_system_return(const BasicBlock& block) noexcept {
  return block.end == Terminator::FAR &&
         (block.branch == BranchKind::SYSRET || block.branch == BranchKind::IRET ||
          block.branch == BranchKind::FAR_RETURN);
}

}  // namespace

void Route::begin(std::uint64_t from, Kind kind, std::optional<std::uint64_t> to) {
  constexpr unsigned kKinds = 64;  // behind those of the Walker
  blocks_.clear();
  limit_ = {};
  kind_ = kKinds + static_cast<unsigned>(kind) * 4 + (has_jumps_ ? 2U : 0U) + (has_calls_ ? 1U : 0U);
  to_ = to;
  anchor_.reset();
  searched_ = {};
  count_ = 0;
  by_branch_ = false;
  ip_ = from;
  block_ = &walker_.code().at(from);
}

// Notes that the path leads to block_. True if the search fails from here on, as one did before.
bool Route::failed_before() {
  searched_.pass(block_->ip, block_->ip + block_->size);
  if (anchor_ || !FailedSearches::is_anchor(block_->ip, limit_.blocks())) return false;
  if (const FailedSearch* const failed = walker_.code().failed_searches().find(block_->ip, kind_, to_)) {
    ip_ = failed->end;
    return true;
  }
  anchor_ = block_->ip;
  limit_ = {};
  return false;
}

bool Route::reaches(std::uint64_t ip) {
  if (ip - block_->ip >= block_->size) return false;  // also true if ip < block_->ip
  std::uint64_t at = block_->ip;
  std::uint32_t count = 0;
  for (const BlockInsn& insn : walker_.code().insns(*block_)) {
    if (at >= ip) break;
    at += insn.size;
    ++count;
  }
  if (at != ip) return false;
  ip_ = ip;
  count_ = count;
  return true;
}

void Route::end_at_branch() noexcept {
  ip_ = block_->last_ip;
  count_ = block_->count - 1U;
  by_branch_ = true;
}

// True if the path follows the direct branch at the end of `block`. (Some recorders omit a call to the next
// instruction, which only reads the IP.)
bool Route::follows(const BasicBlock& block) const noexcept {
  if (block.end == Terminator::CALL) return !has_calls_ || block.target == block.next_ip;
  return block.end == Terminator::JUMP && !has_jumps_;
}

// Advances to the block after block_.
bool Route::pass(bool over_calls) {
  BasicBlock& here = *block_;
  BlockCache& code = walker_.code();
  if (follows(here)) {
    block_ = &code.target(here);
  } else if (here.end == Terminator::COND || here.end == Terminator::FALL ||
             (over_calls && is_system_call(here))) {
    block_ = &code.next(here);
  } else {
    return false;
  }
  blocks_.push_back(&here);
  ip_ = block_->ip;
  count_ = 0;
  return limit_.allows(here.count);
}

Status Route::fail() {
  if (block_->end == Terminator::FAIL) return block_->failure;
  ip_ = searched_.end = block_->last_ip;
  if (anchor_) walker_.code().failed_searches().add(*anchor_, kind_, to_, searched_);
  return Status::RECORD_MISMATCH;
}

Status Route::find(std::uint64_t from, std::uint64_t to) {
  begin(from, Kind::PATH, to);
  for (;;) {
    if (block_->end == Terminator::FAIL) return fail();
    if (failed_before()) return Status::RECORD_MISMATCH;
    if (reaches(to)) return Status::OK;
    if (!pass(true)) return fail();
  }
}

Status Route::find_entry(std::uint64_t from, std::uint64_t resume) {
  begin(from, Kind::ENTRY, resume);
  for (;;) {
    if (block_->end == Terminator::FAIL) return fail();
    if (failed_before()) return Status::RECORD_MISMATCH;
    if (reaches(resume)) return Status::OK;
    if (is_system_call(*block_) && block_->next_ip == resume) {
      end_at_branch();
      return Status::OK;
    }
    if (!pass(false)) return fail();
  }
}

Status Route::find_exit(std::uint64_t from) {
  begin(from, Kind::EXIT, std::nullopt);
  for (;;) {
    if (block_->end == Terminator::FAIL) return fail();
    if (failed_before()) return Status::RECORD_MISMATCH;
    if (is_system_return(*block_)) {
      end_at_branch();
      return Status::OK;
    }
    if (!pass(false)) return fail();
  }
}

void Route::emit(bool with_last) {
  for (const BasicBlock* block : blocks_) {
    walker_.emit_block(*block);
    switch (block->end) {
      case Terminator::COND:
        walker_.emit_branch(BranchKind::COND, block->last_ip, block->next_ip, kFell);
        break;
      case Terminator::JUMP:
      case Terminator::CALL:
        walker_.emit_branch(block->branch, block->last_ip, block->target, kTakenBranch);
        break;
      case Terminator::FAR:
        walker_.emit_branch(block->branch, block->last_ip, 0, kLeft);
        break;
      default:
        break;
    }
  }
  if (with_last) {
    walker_.emit_block(*block_);
  } else {
    walker_.emit_part(*block_, count_, static_cast<std::uint32_t>(ip_ - block_->ip));
  }
}

}  // namespace ptkit::flow
