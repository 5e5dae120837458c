#include "capture/linux/encode/block_path.h"

#include "capture/linux/encode/user_tracer.h"

namespace ptkit::capture {

using code::insn::InsnClass;

bool ends_in_branch(const GuestBlock& block) noexcept {
  return block.end.cls != InsnClass::OTHER && block.end.cls != InsnClass::PTWRITE;
}

std::optional<std::size_t> index_at(const GuestBlock& block, std::uint64_t ip) noexcept {
  if (ip < block.pc || ip > block.last) return std::nullopt;
  std::uint64_t at = block.pc;
  for (std::size_t index = 0; index < block.insns; ++index) {
    if (at == ip) return index;
    at += block.sizes[index];
  }
  return std::nullopt;
}

bool leads_to(const GuestBlock& block, std::uint64_t to) noexcept {
  switch (block.end.cls) {
    case InsnClass::OTHER:
    case InsnClass::PTWRITE:
      return to == block.next;
    case InsnClass::COND_JUMP:
      return to == block.next || to == block.target;
    case InsnClass::JUMP:
    case InsnClass::CALL:
      return to == block.target;
    case InsnClass::CALL_INDIRECT:
      // The CALL stores its return address, so a page fault can interrupt it at block.last. A CALL has
      // another target than itself.
      return to != block.last;
    case InsnClass::FAR_CALL:
      return !enters_kernel(block.end.kind) || to == block.next;
    case InsnClass::JUMP_INDIRECT:
    case InsnClass::RETURN:
    case InsnClass::FAR_RETURN:
    case InsnClass::FAR_JUMP:
      return true;
  }
  return true;
}

std::optional<std::size_t> retired_before(const GuestBlock& block, const GuestBlock& next) noexcept {
  const auto index = index_at(block, next.pc);
  if (!index || (!next.single && leads_to(block, next.pc))) return std::nullopt;
  // The kernel can restart a system call.
  if (block.end.cls == InsnClass::FAR_CALL && next.pc == block.last) return std::nullopt;
  return index;
}

std::optional<std::size_t> retired_before(const GuestBlock& block, std::uint64_t ip, bool fault) noexcept {
  const auto index = index_at(block, ip);
  if (!index || (!fault && leads_to(block, ip))) return std::nullopt;
  return index;
}

}  // namespace ptkit::capture
