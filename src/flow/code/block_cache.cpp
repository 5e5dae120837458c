#include "flow/code/block_cache.h"

#include <array>

#include "code/insn/quick.h"

namespace ptkit::flow {

using code::insn::InsnClass;
using code::insn::InsnKind;

namespace {

constexpr std::size_t kLongestInsn = 15;

bool ends_block(InsnClass cls) noexcept { return cls >= InsnClass::COND_JUMP && cls <= InsnClass::FAR_JUMP; }

Terminator terminator(InsnClass cls, InsnKind kind) noexcept {
  switch (cls) {
    case InsnClass::COND_JUMP:
      return Terminator::COND;
    case InsnClass::JUMP:
      // JMPABS is direct, but a TIP gives its target.
      return kind == InsnKind::JMPABS ? Terminator::INDIRECT : Terminator::JUMP;
    case InsnClass::CALL:
      return Terminator::CALL;
    case InsnClass::RETURN:
      return Terminator::RETURN;
    case InsnClass::JUMP_INDIRECT:
    case InsnClass::CALL_INDIRECT:
      return Terminator::INDIRECT;
    case InsnClass::FAR_CALL:
    case InsnClass::FAR_RETURN:
    case InsnClass::FAR_JUMP:
      return Terminator::FAR;
    case InsnClass::OTHER:
    case InsnClass::PTWRITE:
      break;
  }
  return Terminator::FALL;
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

// Decodes near the end of a chunk of the image, where an instruction may continue in the next chunk.
base::Status BlockCache::decode_across(std::uint64_t at, code::insn::Insn& out) {
  std::array<std::uint8_t, kLongestInsn> joined;
  const std::size_t size = view_.read(at, joined);
  const base::Bytes code = base::Bytes(joined).first(size);
  const base::Status status = code.empty() ? base::Status::NO_CODE : code::insn::decode(mode_, code, out);
  if (status != base::Status::OK && size < kLongestInsn) met_missing_code_ = true;
  return status;
}

base::Status BlockCache::decode_at(std::uint64_t at, code::insn::Insn& out) {
  const base::Bytes rest = bytes_at(at);
  if (rest.size() >= kLongestInsn) return code::insn::decode(mode_, rest.first(kLongestInsn), out);
  // Otherwise the instruction is within its chunk: recorders save executed code in many small chunks.
  if (code::insn::decode_quick(mode_, rest, out)) return base::Status::OK;
  return decode_across(at, out);
}

void BlockCache::finish(BasicBlock& block, const code::insn::Insn& last) const {
  block.end = terminator(last.cls, last.kind);
  block.branch = branch_kind(last.cls, last.kind);
  if (last.cls == InsnClass::JUMP || last.cls == InsnClass::CALL || last.cls == InsnClass::COND_JUMP) {
    block.target = code::insn::direct_target(last, mode_, block.last_ip, cs_base_);
  }
  // A direct near call to the next instruction only reads the IP. Return compression does not count it
  // (manual, "Indirect Transfer Compression for Returns").
  block.pushes =
      last.cls == InsnClass::CALL_INDIRECT || (last.cls == InsnClass::CALL && last.displacement != 0);
}

void BlockCache::fill(BasicBlock& block, std::span<BlockInsn> out) {
  std::uint64_t at = block.ip;
  std::size_t size = 0;
  code::insn::Insn insn;
  for (BlockInsn& slot : out) {
    block.next_ip = at;
    const base::Status status = decode_at(at, insn);
    if (status != base::Status::OK) {
      if (block.count != 0) break;
      block.end = Terminator::FAIL;
      block.failure = status;
      return;
    }
    slot = {insn.size, insn.cls, insn.kind};
    ++block.count;
    size += insn.size;
    block.last_ip = at;
    block.next_ip = code::insn::next_ip(insn, mode_, at, cs_base_);
    if (ends_block(insn.cls)) {
      finish(block, insn);
      break;
    }
    if (block.next_ip != at + insn.size) break;  // the address wraps
    at = block.next_ip;
  }
  block.kind = out[block.count - 1U].kind;
  block.size = static_cast<std::uint16_t>(size);
}

CodeStep BlockCache::step_at(std::uint64_t ip) {
  code::insn::Insn insn;
  if (const base::Status status = decode_at(ip, insn); status != base::Status::OK)
    return {Terminator::FAIL, ip, status};
  const Terminator end = terminator(insn.cls, insn.kind);
  const bool direct = end == Terminator::JUMP || end == Terminator::CALL;
  const std::uint64_t next = direct ? code::insn::direct_target(insn, mode_, ip, cs_base_)
                                    : code::insn::next_ip(insn, mode_, ip, cs_base_);
  return {end, next, base::Status::OK, insn.cls, insn.kind};
}

BlockCache::BlockCache(const code::image::CodeView& view, code::insn::ExecMode mode, std::uint32_t cs_base)
    : view_(view), mode_(mode), cs_base_(cs_base) {}

void BlockCache::clear() {
  blocks_.clear();
  insns_.clear();
  blocks_by_ip_.release();
  arena_.clear();
  blocks_by_ip_ = IpIndex(arena_);  // with memory that the arena keeps
  met_missing_code_ = false;
}

BasicBlock& BlockCache::build(std::uint64_t ip) {
  const std::span<BlockInsn> room = insns_.room(kMaxInsns);
  const auto number = static_cast<std::uint32_t>(blocks_.end());
  BasicBlock& block = blocks_.add();
  block.ip = ip;
  block.number_low = static_cast<std::uint16_t>(number);
  block.number_high = static_cast<std::uint8_t>(number >> 16U);
  block.first = static_cast<std::uint32_t>(insns_.end());
  fill(block, room);
  insns_.keep(block.count);
  blocks_by_ip_.put(ip, number);
  return block;
}

}  // namespace ptkit::flow
