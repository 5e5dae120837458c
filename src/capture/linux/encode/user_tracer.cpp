#include "capture/linux/encode/user_tracer.h"

namespace ptkit::capture {

using code::insn::ExecMode;
using code::insn::InsnClass;
using code::insn::InsnKind;

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

void UserTracer::enter(std::uint64_t ip, ExecMode mode) {
  generator_.set_mode(mode == ExecMode::BITS64, mode == ExecMode::BITS32, true);
  generator_.enable(ip);
  inside_ = true;
}

void UserTracer::leave() {
  generator_.far_transfer_out();
  inside_ = false;
}

void UserTracer::interrupted(std::uint64_t ip) {
  if (!inside_) return;
  generator_.async_out(ip);
  inside_ = false;
}

void UserTracer::leave_to(std::uint64_t ip) {
  generator_.disable(ip);
  inside_ = false;
}

void UserTracer::code_changed(std::uint64_t ip, std::uint64_t tsc) {
  interrupted(ip);
  if (!set_time_loosely(tsc)) generator_.wake();
}

// Control reached an address that the instruction cannot lead to (a page fault's handler moved on, a
// transaction aborted). For user code this is an interrupt, and so are the packets.
bool UserTracer::unexpected(std::uint64_t from, std::uint64_t to) {
  if (from == to) return true;
  interrupted(from);
  return false;
}

bool UserTracer::retire(const code::insn::Insn& insn, std::uint64_t ip, std::uint64_t to, ExecMode mode,
                        ExecMode next_mode) {
  if (!inside_) enter(ip, mode);
  const std::uint64_t next = code::insn::next_ip(insn, mode, ip);
  switch (insn.cls) {
    case InsnClass::OTHER:
    case InsnClass::PTWRITE:
      return unexpected(next, to);
    case InsnClass::COND_JUMP: {
      const std::uint64_t target = code::insn::direct_target(insn, mode, ip);
      const bool taken = to == target && to != next;
      generator_.conditional(taken, taken ? target : next);
      return unexpected(taken ? target : next, to);
    }
    case InsnClass::JUMP: {
      const std::uint64_t target = code::insn::direct_target(insn, mode, ip);
      if (insn.kind == InsnKind::JMPABS) generator_.jump_indirect(target);
      return unexpected(target, to);
    }
    case InsnClass::CALL: {
      const std::uint64_t target = code::insn::direct_target(insn, mode, ip);
      generator_.call(next, target);
      return unexpected(target, to);
    }
    case InsnClass::JUMP_INDIRECT:
      generator_.jump_indirect(to);
      return true;
    case InsnClass::CALL_INDIRECT:
      generator_.call_indirect(next, to);
      return true;
    case InsnClass::RETURN:
      generator_.ret(to);
      return true;
    case InsnClass::FAR_CALL:
      if (enters_kernel(insn.kind)) {
        leave();
        return true;
      }
      [[fallthrough]];
    case InsnClass::FAR_RETURN:
    case InsnClass::FAR_JUMP:
      generator_.set_mode(next_mode == ExecMode::BITS64, next_mode == ExecMode::BITS32, true);
      generator_.far_transfer(to);
      return true;
  }
  return true;
}

}  // namespace ptkit::capture
