#include "capture/user_unit.h"

namespace ptkit::capture {

using insn::ExecMode;
using insn::InsnClass;
using insn::InsnKind;

bool enters_kernel(InsnKind kind) noexcept {
  switch (kind) {
    case InsnKind::SYSCALL:
    case InsnKind::SYSENTER:
    case InsnKind::INT:
    case InsnKind::INT3:
    case InsnKind::INT1:
    case InsnKind::INTO:
      return true;
    default:
      return false;
  }
}

void UserUnit::enter(std::uint64_t ip, ExecMode mode) {
  unit_.set_mode(mode == ExecMode::BITS64, mode == ExecMode::BITS32, true);
  unit_.enable(ip);
  inside_ = true;
}

void UserUnit::leave() {
  unit_.far_transfer_out();
  inside_ = false;
}

void UserUnit::interrupted(std::uint64_t ip) {
  if (!inside_) return;
  unit_.async_out(ip);
  inside_ = false;
}

void UserUnit::leave_to(std::uint64_t ip) {
  unit_.disable(ip);
  inside_ = false;
}

void UserUnit::code_changed(std::uint64_t ip, std::uint64_t tsc) {
  interrupted(ip);
  if (!set_time_loosely(tsc)) unit_.wake();
}

// Control went somewhere that the instruction does not explain (a page fault's handler that moved on, an
// aborted transaction): told as what it is to user code, an interrupt.
bool UserUnit::unexpected(std::uint64_t from, std::uint64_t to) {
  if (from == to) return true;
  interrupted(from);
  return false;
}

bool UserUnit::retire(const insn::Insn& insn, std::uint64_t ip, std::uint64_t to, ExecMode mode,
                      ExecMode next_mode) {
  if (!inside_) enter(ip, mode);
  const std::uint64_t next = insn::next_ip(insn, mode, ip);
  switch (insn.cls) {
    case InsnClass::OTHER:
    case InsnClass::PTWRITE:
      return unexpected(next, to);
    case InsnClass::COND_JUMP: {
      const std::uint64_t target = insn::direct_target(insn, mode, ip);
      const bool taken = to == target && to != next;
      unit_.conditional(taken, taken ? target : next);
      return unexpected(taken ? target : next, to);
    }
    case InsnClass::JUMP: {
      const std::uint64_t target = insn::direct_target(insn, mode, ip);
      if (insn.kind == InsnKind::JMPABS) unit_.jump_indirect(target);
      return unexpected(target, to);
    }
    case InsnClass::CALL: {
      const std::uint64_t target = insn::direct_target(insn, mode, ip);
      unit_.call(next, target);
      return unexpected(target, to);
    }
    case InsnClass::JUMP_INDIRECT:
      unit_.jump_indirect(to);
      return true;
    case InsnClass::CALL_INDIRECT:
      unit_.call_indirect(next, to);
      return true;
    case InsnClass::RETURN:
      unit_.ret(to);
      return true;
    case InsnClass::FAR_CALL:
      if (enters_kernel(insn.kind)) {
        leave();
        return true;
      }
      [[fallthrough]];
    case InsnClass::FAR_RETURN:
    case InsnClass::FAR_JUMP:
      unit_.set_mode(next_mode == ExecMode::BITS64, next_mode == ExecMode::BITS32, true);
      unit_.far_transfer(to);
      return true;
  }
  return true;
}

}  // namespace ptkit::capture
