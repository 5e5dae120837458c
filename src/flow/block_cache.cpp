#include "flow/block_cache.h"

#include <array>

#include "flow/decision_graph.h"
#include "insn/quick.h"

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

// Near the end of a piece of the image, where an instruction may go on in the next one.
base::Status BlockCache::decode_across(std::uint64_t at, insn::Insn& out) {
  std::array<std::uint8_t, kLongestInsn> joined;
  const std::size_t size = view_.read(at, joined);
  const base::Bytes code = base::Bytes(joined).first(size);
  const base::Status status = code.empty() ? base::Status::NO_CODE : insn::decode(mode_, code, out);
  if (status != base::Status::OK && size < kLongestInsn) met_missing_code_ = true;
  return status;
}

void BlockCache::move_window(std::uint64_t at) {
  window_ = {at, view_.source_at(at)};
  const std::int32_t file = window_.source.file;
  if (kept_ == nullptr || file == memory_.file) return;
  memory_ = Memory{.file = file, .can_keep = kept_->can_keep(file), .code = kept_->of(file, mode_)};
}

bool BlockCache::recall(std::uint64_t at, base::Bytes rest, insn::Insn& out) noexcept {
  const std::uint64_t offset = window_.source.file_offset + (at - window_.begin);
  const std::uint64_t number = offset / image::KeptLine::kBytes;
  if (number != memory_.line_number) {
    memory_.line = memory_.code->line(offset);
    memory_.line_number = number;
  }
  if (memory_.line == nullptr || !memory_.line->recall(offset, mode_, rest, out)) return false;
  ++recalled_;
  return true;
}

base::Status BlockCache::decode_at(std::uint64_t at, insn::Insn& out) {
  // An address before the window is far behind it.
  if (at - window_.begin >= window_.source.bytes.size()) move_window(at);
  const base::Bytes rest = window_.source.bytes.subspan(at - window_.begin);
  if (memory_.code != nullptr && recall(at, rest, out)) return base::Status::OK;
  base::Status status = base::Status::OK;
  if (rest.size() >= kLongestInsn) {
    status = insn::decode(mode_, rest.first(kLongestInsn), out);
  } else if (!insn::decode_quick(mode_, rest, out)) {
    // Else it lies whole in its piece: recorders keep what was executed, in many small pieces.
    return decode_across(at, out);
  }
  if (memory_.can_keep && status == base::Status::OK && image::KeptLine::fits(out)) ++learned_;
  return status;
}

void BlockCache::collect(std::map<std::int32_t, image::KeptLines>& lines) const {
  if (kept_ == nullptr) return;
  Window window;
  image::KeptLines* to = nullptr;
  runs_.each([&](const Run& run) {
    std::uint64_t at = run.ip;
    for (const BlockInsn& insn : insns(run)) {
      if (at - window.begin >= window.source.bytes.size()) {
        window = {at, view_.source_at(at)};
        const std::int32_t file = window.source.file;
        to = kept_->can_keep(file) ? &lines.try_emplace(file, mode_).first->second : nullptr;
      }
      const std::uint64_t skip = at - window.begin;
      // What goes on in another piece is rare, and decoded again.
      if (to != nullptr && window.source.bytes.size() - skip >= insn.size)
        to->add(window.source.file_offset + skip, window.source.bytes.subspan(skip, insn.size));
      at += insn.size;
    }
  });
}

void BlockCache::finish(Run& run, const insn::Insn& last) const {
  run.end = run_end(last.cls, last.kind);
  run.branch = branch_kind(last.cls, last.kind);
  if (last.cls == InsnClass::JUMP || last.cls == InsnClass::CALL || last.cls == InsnClass::COND_JUMP) {
    run.target = insn::direct_target(last, mode_, run.last_ip, cs_base_);
  }
  // A direct near call to the next instruction only reads the IP: it is not counted (manual, "Indirect
  // Transfer Compression for Returns").
  run.pushes =
      last.cls == InsnClass::CALL_INDIRECT || (last.cls == InsnClass::CALL && last.displacement != 0);
}

void BlockCache::fill(Run& run, std::span<BlockInsn> out) {
  std::uint64_t at = run.ip;
  std::size_t size = 0;
  insn::Insn insn;
  for (BlockInsn& slot : out) {
    run.next_ip = at;
    const base::Status status = decode_at(at, insn);
    if (status != base::Status::OK) {
      if (run.count != 0) break;
      run.end = RunEnd::FAIL;
      run.failure = status;
      return;
    }
    slot = {insn.size, insn.cls, insn.kind};
    ++run.count;
    size += insn.size;
    run.last_ip = at;
    run.next_ip = insn::next_ip(insn, mode_, at, cs_base_);
    if (ends_run(insn.cls)) {
      finish(run, insn);
      break;
    }
    if (run.next_ip != at + insn.size) break;  // the address wrapped
    at = run.next_ip;
  }
  run.kind = out[run.count - 1U].kind;
  run.size = static_cast<std::uint16_t>(size);
}

BlockCache::BlockCache(const image::CodeView& view, insn::ExecMode mode, image::KeptFiles* kept,
                       std::uint32_t cs_base)
    : view_(view), mode_(mode), cs_base_(cs_base), kept_(kept) {}

BlockCache::~BlockCache() = default;

DecisionGraph& BlockCache::graph(bool return_compression) {
  if (graph_ == nullptr || graph_->return_compression() != return_compression)
    graph_ = std::make_unique<DecisionGraph>(*this, return_compression);
  return *graph_;
}

void BlockCache::forget_graph() noexcept { graph_.reset(); }

void BlockCache::clear() {
  graph_.reset();
  runs_.clear();
  insns_.clear();
  runs_by_ip_.release();
  arena_.clear();
  runs_by_ip_ = IpIndex(arena_);  // from what the arena keeps
  recalled_ = learned_ = 0;
  met_missing_code_ = false;
}

Run& BlockCache::build(std::uint64_t ip) {
  const std::span<BlockInsn> room = insns_.room(kMaxInsns);
  const auto number = static_cast<std::uint32_t>(runs_.end());
  Run& run = runs_.add();
  run.ip = ip;
  run.number_low = static_cast<std::uint16_t>(number);
  run.number_high = static_cast<std::uint8_t>(number >> 16U);
  run.first = static_cast<std::uint32_t>(insns_.end());
  fill(run, room);
  insns_.keep(run.count);
  runs_by_ip_.put(ip, number);
  return run;
}

}  // namespace ptkit::flow
