#include "capture/thread_encoder.h"

namespace ptkit::capture {

namespace {

using insn::ExecMode;
using insn::InsnClass;
using insn::InsnKind;

// Far transfers that always go to the kernel, which is not traced.
bool enters_kernel(InsnKind kind) {
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

}  // namespace

ThreadEncoder::ThreadEncoder(const softpt::UnitConfig& config, formats::PtkWriter& writer,
                             std::uint32_t stream, TruthLog truth)
    : stream_(stream),
      unit_(config, [&writer, stream](base::Bytes bytes) { writer.data(stream, bytes); }),
      truth_(std::move(truth)) {}

void ThreadEncoder::set_time(std::uint64_t tsc) {
  if (first_tsc_ == 0) first_tsc_ = tsc;
  // The core runs at the speed of the TSC (CBR is the maximum non-turbo ratio), so cycles are ticks.
  unit_.set_time(tsc, tsc - first_tsc_);
}

void ThreadEncoder::enter(std::uint64_t ip, ExecMode mode) {
  unit_.set_mode(mode == ExecMode::BITS64, mode == ExecMode::BITS32, true);
  unit_.enable(ip);
  inside_ = true;
}

void ThreadEncoder::leave() {
  unit_.far_transfer_out();
  inside_ = false;
}

void ThreadEncoder::interrupted(std::uint64_t ip) {
  if (!inside_) return;
  unit_.async_out(ip);
  inside_ = false;
}

void ThreadEncoder::code_changed(std::uint64_t ip, std::uint64_t tsc) {
  interrupted(ip);
  set_time(tsc);
  unit_.wake();
}

// The step went somewhere that the instruction does not explain (a page fault's handler that moved on, an
// aborted transaction): told as what it is to user code, an interrupt.
void ThreadEncoder::unexpected(std::uint64_t from, std::uint64_t to) {
  if (from != to) interrupted(from);
}

void ThreadEncoder::retire(const insn::Insn& insn, std::uint64_t ip, std::uint64_t to, ExecMode mode,
                           ExecMode next_mode) {
  if (!inside_) enter(ip, mode);
  truth_.add(ip);
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
      return unit_.jump_indirect(to);
    case InsnClass::CALL_INDIRECT:
      return unit_.call_indirect(next, to);
    case InsnClass::RETURN:
      return unit_.ret(to);
    case InsnClass::FAR_CALL:
      if (enters_kernel(insn.kind)) return leave();
      [[fallthrough]];
    case InsnClass::FAR_RETURN:
    case InsnClass::FAR_JUMP:
      unit_.set_mode(next_mode == ExecMode::BITS64, next_mode == ExecMode::BITS32, true);
      return unit_.far_transfer(to);
  }
}

void ThreadEncoder::finish() {
  unit_.flush();
  truth_.flush();
}

}  // namespace ptkit::capture
