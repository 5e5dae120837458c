#include "flow/route.h"

namespace ptkit::flow {

using base::Status;

namespace {

constexpr std::uint8_t kFell = FROM_KNOWN | TO_KNOWN;
constexpr std::uint8_t kWent = FROM_KNOWN | TO_KNOWN | TAKEN;
constexpr std::uint8_t kLeft = FROM_KNOWN | TAKEN;

// Comes back behind the instruction, as a rule.
bool is_system_call(const Run& run) noexcept {
  return run.end == RunEnd::FAR && (run.branch == BranchKind::SYSCALL || run.branch == BranchKind::FAR_CALL ||
                                    run.branch == BranchKind::VMEXIT);
}

bool is_system_return(const Run& run) noexcept {
  return run.end == RunEnd::FAR && (run.branch == BranchKind::SYSRET || run.branch == BranchKind::IRET ||
                                    run.branch == BranchKind::FAR_RETURN);
}

}  // namespace

void Route::begin(std::uint64_t from) {
  runs_.clear();
  walked_ = 0;
  count_ = 0;
  by_branch_ = false;
  ip_ = from;
  run_ = &walker_.code().at(from);
}

bool Route::reaches(std::uint64_t ip) {
  if (ip - run_->ip >= run_->size) return false;  // also if ip < run_->ip
  std::uint64_t at = run_->ip;
  std::uint32_t count = 0;
  for (const BlockInsn& insn : walker_.code().insns(*run_)) {
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
  ip_ = run_->last_ip;
  count_ = run_->count - 1U;
  by_branch_ = true;
}

// A direct branch. (A call to the next instruction only reads the IP: some do not record it.)
bool Route::follows(const Run& run) const noexcept {
  if (run.end == RunEnd::CALL) return !has_calls_ || run.target == run.next_ip;
  return run.end == RunEnd::JUMP && !has_jumps_;
}

// To what follows the run.
bool Route::pass(bool over_calls) {
  Run& here = *run_;
  walked_ += here.count;
  BlockCache& code = walker_.code();
  if (follows(here)) {
    run_ = &code.target(here);
  } else if (here.end == RunEnd::COND || here.end == RunEnd::FALL || (over_calls && is_system_call(here))) {
    run_ = &code.next(here);
  } else {
    return false;
  }
  runs_.push_back(&here);
  ip_ = run_->ip;
  count_ = 0;
  return !walker_.too_far(walked_);
}

Status Route::fail() {
  walker_.pay_for_walk(walked_);
  if (run_->end == RunEnd::FAIL) return run_->failure;
  ip_ = run_->last_ip;
  return Status::RECORD_MISMATCH;
}

Status Route::find(std::uint64_t from, std::uint64_t to) {
  begin(from);
  for (;;) {
    if (run_->end == RunEnd::FAIL) return fail();
    if (reaches(to)) return Status::OK;
    if (!pass(true)) return fail();
  }
}

Status Route::find_entry(std::uint64_t from, std::uint64_t resume) {
  begin(from);
  for (;;) {
    if (run_->end == RunEnd::FAIL) return fail();
    if (reaches(resume)) return Status::OK;
    if (is_system_call(*run_) && run_->next_ip == resume) {
      end_at_branch();
      return Status::OK;
    }
    if (!pass(false)) return fail();
  }
}

Status Route::find_exit(std::uint64_t from) {
  begin(from);
  for (;;) {
    if (run_->end == RunEnd::FAIL) return fail();
    if (is_system_return(*run_)) {
      end_at_branch();
      return Status::OK;
    }
    if (!pass(false)) return fail();
  }
}

void Route::give(bool with_last) {
  for (const Run* run : runs_) {
    walker_.give_block(*run);
    switch (run->end) {
      case RunEnd::COND:
        walker_.give_branch(BranchKind::COND, run->last_ip, run->next_ip, kFell);
        break;
      case RunEnd::JUMP:
      case RunEnd::CALL:
        walker_.give_branch(run->branch, run->last_ip, run->target, kWent);
        break;
      case RunEnd::FAR:
        walker_.give_branch(run->branch, run->last_ip, 0, kLeft);
        break;
      default:
        break;
    }
  }
  if (with_last) {
    walker_.give_block(*run_);
  } else {
    walker_.give_part(*run_, count_, static_cast<std::uint32_t>(ip_ - run_->ip));
  }
}

}  // namespace ptkit::flow
