#include "flow/block_cache.h"

#include <array>
#include <utility>

namespace ptkit::flow {

using insn::InsnClass;
using insn::InsnKind;

namespace {

constexpr std::size_t kLongestInsn = 15;

bool ends_run(InsnClass cls) noexcept { return cls >= InsnClass::COND_JUMP && cls <= InsnClass::FAR_JUMP; }

RunEnd run_end(InsnClass cls, InsnKind kind) noexcept {
  switch (cls) {
    case InsnClass::COND_JUMP:
      return RunEnd::COND;
    case InsnClass::JUMP:
      // JMPABS is direct, yet a TIP tells its target.
      return kind == InsnKind::JMPABS ? RunEnd::INDIRECT : RunEnd::JUMP;
    case InsnClass::CALL:
      return RunEnd::CALL;
    case InsnClass::RETURN:
      return RunEnd::RETURN;
    case InsnClass::JUMP_INDIRECT:
    case InsnClass::CALL_INDIRECT:
      return RunEnd::INDIRECT;
    case InsnClass::FAR_CALL:
    case InsnClass::FAR_RETURN:
    case InsnClass::FAR_JUMP:
      return RunEnd::FAR;
    case InsnClass::OTHER:
    case InsnClass::PTWRITE:
      break;
  }
  return RunEnd::FALL;
}

BranchKind far_call_kind(InsnKind kind) noexcept {
  switch (kind) {
    case InsnKind::SYSCALL:
    case InsnKind::SYSENTER:
      return BranchKind::SYSCALL;
    case InsnKind::VMLAUNCH:
    case InsnKind::VMRESUME:
      return BranchKind::VMENTRY;
    case InsnKind::VMCALL:
      return BranchKind::VMEXIT;
    default:
      return BranchKind::FAR_CALL;
  }
}

BranchKind far_return_kind(InsnKind kind) noexcept {
  switch (kind) {
    case InsnKind::IRET:
    case InsnKind::UIRET:
      return BranchKind::IRET;
    case InsnKind::SYSRET:
    case InsnKind::SYSEXIT:
    case InsnKind::ERETS:
    case InsnKind::ERETU:
      return BranchKind::SYSRET;
    default:
      return BranchKind::FAR_RETURN;
  }
}

}  // namespace

BranchKind branch_kind(InsnClass cls, InsnKind kind) noexcept {
  switch (cls) {
    case InsnClass::JUMP:
      return BranchKind::JUMP;
    case InsnClass::JUMP_INDIRECT:
      return BranchKind::JUMP_INDIRECT;
    case InsnClass::CALL:
      return BranchKind::CALL;
    case InsnClass::CALL_INDIRECT:
      return BranchKind::CALL_INDIRECT;
    case InsnClass::RETURN:
      return BranchKind::RETURN;
    case InsnClass::FAR_CALL:
      return far_call_kind(kind);
    case InsnClass::FAR_RETURN:
      return far_return_kind(kind);
    case InsnClass::FAR_JUMP:
      return BranchKind::FAR_JUMP;
    case InsnClass::COND_JUMP:
    case InsnClass::OTHER:
    case InsnClass::PTWRITE:
      break;
  }
  return BranchKind::COND;
}

base::Status BlockCache::decode_at(std::uint64_t at, insn::Insn& out) {
  base::Bytes code = view_.bytes_at(at);
  std::array<std::uint8_t, kLongestInsn> joined;
  if (code.size() < kLongestInsn) {
    // Near the end of a piece of the image: the instruction may go on in the next one.
    const std::size_t size = view_.read(at, joined);
    code = base::Bytes(joined).first(size);
  } else {
    code = code.first(kLongestInsn);
  }
  const base::Status status = code.empty() ? base::Status::NO_CODE : insn::decode(mode_, code, out);
  if (status != base::Status::OK && code.size() < kLongestInsn) met_missing_code_ = true;
  return status;
}

void BlockCache::finish(Run& run, const insn::Insn& last) const {
  run.end = run_end(last.cls, last.kind);
  run.branch = branch_kind(last.cls, last.kind);
  if (last.cls == InsnClass::JUMP || last.cls == InsnClass::CALL || last.cls == InsnClass::COND_JUMP) {
    run.target =
        last.kind == InsnKind::JMPABS ? last.absolute : insn::direct_target(last, mode_, run.last_ip);
  }
  // A direct near call to the next instruction only reads the IP: it is not counted (manual, "Indirect
  // Transfer Compression for Returns").
  run.pushes =
      last.cls == InsnClass::CALL_INDIRECT || (last.cls == InsnClass::CALL && last.displacement != 0);
}

// Copies instructions that another run has already, from `at` on. Returns false where the new run ends; else
// `at` is where to go on.
bool BlockCache::copy_known(Run& run, const InsnRef& known, std::uint64_t& at) {
  const Run& from = *known.run;
  for (std::uint32_t i = known.index; i < from.count; ++i) {
    if (run.count == kMaxInsns) return false;
    const BlockInsn insn = pool_[from.first + i];
    pool_.push_back(insn);
    ++run.count;
    run.size += insn.size;
    run.last_ip = at;
    run.kind = insn.kind;
    at += insn.size;
  }
  run.next_ip = from.next_ip;
  if (from.end == RunEnd::FALL) {
    const bool contiguous = from.next_ip == at;  // else the address wrapped
    at = from.next_ip;
    return contiguous;
  }
  run.end = from.end;
  run.branch = from.branch;
  run.target = from.target;
  run.pushes = from.pushes;
  return false;
}

void BlockCache::fill(Run& run) {
  std::uint64_t at = run.ip;
  for (;;) {
    run.next_ip = at;
    if (run.count == kMaxInsns) return;
    if (const InsnRef* known = insns_by_ip_.find(at)) {
      if (copy_known(run, InsnRef(*known), at)) continue;
      if (run.end == RunEnd::FALL) run.next_ip = at;
      return;
    }
    insn::Insn insn;
    const base::Status status = decode_at(at, insn);
    if (status != base::Status::OK) {
      if (run.count == 0) {
        run.end = RunEnd::FAIL;
        run.failure = status;
      }
      return;
    }
    ++decoded_;
    // In this order, so that running out of memory leaves no entry for an instruction that is not there.
    pool_.push_back(BlockInsn{insn.size, insn.cls, insn.kind});
    insns_by_ip_.insert(at, InsnRef{&run, run.count});
    ++run.count;
    run.size += insn.size;
    run.last_ip = at;
    run.kind = insn.kind;
    run.next_ip = insn::next_ip(insn, mode_, at);
    if (ends_run(insn.cls)) return finish(run, insn);
    if (run.next_ip != at + insn.size) return;  // the address wrapped
    at = run.next_ip;
  }
}

void BlockCache::clear() {
  // Made first: there may be no memory for them.
  IpMap<RunRef> no_runs;
  IpMap<InsnRef> no_insns;
  std::swap(runs_by_ip_, no_runs);
  std::swap(insns_by_ip_, no_insns);
  runs_.clear();
  std::vector<BlockInsn>().swap(pool_);
  decoded_ = 0;
  met_missing_code_ = false;
}

Run& BlockCache::build(std::uint64_t ip) {
  Run& run = runs_.emplace_back();
  run.ip = ip;
  run.first = static_cast<std::uint32_t>(pool_.size());
  fill(run);
  runs_by_ip_.insert(ip, RunRef{&run});
  return run;
}

}  // namespace ptkit::flow
