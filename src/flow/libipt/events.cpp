#include "flow/libipt/events.h"

namespace ptkit::flow::libipt {
namespace {

using flow::Event;
using flow::EventKind;

void set_kind(Event& event, EventKind kind) noexcept { event.kind = kind; }

// For events with an IP, unless libipt sets ip_suppressed.
void set_ip(Event& event, EventKind kind, const pt_event& from, std::uint64_t ip) noexcept {
  event.kind = kind;
  if (from.ip_suppressed) return;
  event.ip = ip;
  event.flags |= flow::EV_IP_KNOWN;
}

std::uint64_t mode_bits(pt_exec_mode mode) noexcept {
  switch (mode) {
    case ptem_16bit:
      return 16;
    case ptem_32bit:
      return 32;
    case ptem_64bit:
      return 64;
    default:
      return 0;
  }
}

// Enabling and disabling of tracing, and asynchronous branches.
bool to_flow_event(const pt_event& from, Event& to) noexcept {
  const auto& variant = from.variant;
  switch (from.type) {
    case ptev_enabled:
      set_ip(to, EventKind::ENABLED, from, variant.enabled.ip);
      if (variant.enabled.resumed) to.flags |= flow::EV_RESUMED;
      return true;
    case ptev_disabled:
      set_ip(to, EventKind::DISABLED, from, variant.disabled.ip);
      return true;
    case ptev_async_disabled:
      set_ip(to, EventKind::ASYNC_DISABLED, from, variant.async_disabled.ip);
      to.payload = variant.async_disabled.at;
      return true;
    case ptev_async_branch:
      set_ip(to, EventKind::ASYNC_BRANCH, from, variant.async_branch.to);
      to.payload = variant.async_branch.from;
      return true;
    case ptev_overflow:
      set_ip(to, EventKind::OVERFLOW, from, variant.overflow.ip);
      return true;
    case ptev_stop:
      set_kind(to, EventKind::STOP);
      return true;
    default:
      return false;
  }
}

bool to_state_event(const pt_event& from, Event& to) noexcept {
  const auto& variant = from.variant;
  switch (from.type) {
    case ptev_paging:
      set_kind(to, EventKind::PAGING);
      to.payload = variant.paging.cr3;
      if (variant.paging.non_root) to.flags |= flow::EV_NON_ROOT;
      return true;
    case ptev_async_paging:
      set_ip(to, EventKind::ASYNC_PAGING, from, variant.async_paging.ip);
      to.payload = variant.async_paging.cr3;
      if (variant.async_paging.non_root) to.flags |= flow::EV_NON_ROOT;
      return true;
    case ptev_vmcs:
      set_kind(to, EventKind::VMCS);
      to.payload = variant.vmcs.base;
      return true;
    case ptev_async_vmcs:
      set_ip(to, EventKind::ASYNC_VMCS, from, variant.async_vmcs.ip);
      to.payload = variant.async_vmcs.base;
      return true;
    case ptev_exec_mode:
      set_ip(to, EventKind::EXEC_MODE, from, variant.exec_mode.ip);
      to.payload = mode_bits(variant.exec_mode.mode);
      return true;
    case ptev_tsx:
      set_ip(to,
             variant.tsx.aborted       ? EventKind::TSX_ABORT
             : variant.tsx.speculative ? EventKind::TSX_BEGIN
                                       : EventKind::TSX_COMMIT,
             from, variant.tsx.ip);
      return true;
    default:
      return false;
  }
}

bool to_power_event(const pt_event& from, Event& to) noexcept {
  const auto& variant = from.variant;
  switch (from.type) {
    case ptev_exstop:
      set_ip(to, EventKind::EXSTOP, from, variant.exstop.ip);
      return true;
    case ptev_mwait:
      set_ip(to, EventKind::MWAIT, from, variant.mwait.ip);
      to.payload = variant.mwait.hints;
      to.payload2 = variant.mwait.ext;
      return true;
    case ptev_pwre:
      set_kind(to, EventKind::PWRE);
      to.payload = static_cast<std::uint64_t>(variant.pwre.state) << 4 | variant.pwre.sub_state;
      if (variant.pwre.hw) to.flags |= flow::EV_HW;
      return true;
    case ptev_pwrx:
      set_kind(to, EventKind::PWRX);
      to.payload = static_cast<std::uint64_t>(variant.pwrx.last) << 4 | variant.pwrx.deepest;
      to.payload2 = variant.pwrx.interrupt | static_cast<std::uint64_t>(variant.pwrx.store) << 2 |
                    static_cast<std::uint64_t>(variant.pwrx.autonomous) << 3;
      return true;
    case ptev_ptwrite:
      set_ip(to, EventKind::PTWRITE, from, variant.ptwrite.ip);
      to.payload = variant.ptwrite.payload;
      to.payload2 = variant.ptwrite.size;
      return true;
    case ptev_cbr:
      set_kind(to, EventKind::CBR);
      to.payload = variant.cbr.ratio;
      return true;
    case ptev_mnt:
      set_kind(to, EventKind::MNT);
      to.payload = variant.mnt.payload;
      return true;
    case ptev_tick:
      set_ip(to, EventKind::TICK, from, variant.tick.ip);
      return true;
    default:
      return false;
  }
}

#if LIBIPT_VERSION >= 0x201
void set_vector(Event& event, std::uint8_t vector) noexcept {
  event.payload = vector;
  event.flags |= flow::EV_PAYLOAD_KNOWN;
}

void set_vmexit(const pt_event& from, Event& to) noexcept {
  const auto& vmexit = from.variant.vmexit;
  set_ip(to, EventKind::VMEXIT, from, vmexit.ip);
  if (vmexit.has_vector) set_vector(to, vmexit.vector);
  if (vmexit.has_vmxr) {
    to.payload2 = vmexit.vmxr;
    to.flags |= flow::EV_CR2_KNOWN;
  }
  if (vmexit.has_vmxq) {
    to.payload3 = vmexit.vmxq;
    to.flags |= flow::EV_QUALIFICATION_KNOWN;
  }
}

// Event Trace: CFE and EVD packets.
bool to_trace_event(const pt_event& from, Event& to) noexcept {
  const auto& variant = from.variant;
  switch (from.type) {
    case ptev_iflags:
      set_ip(to, EventKind::IFLAG, from, variant.iflags.ip);
      to.payload = variant.iflags.iflag;
      return true;
    case ptev_interrupt:
      set_ip(to, EventKind::INTERRUPT, from, variant.interrupt.ip);
      set_vector(to, variant.interrupt.vector);
      if (variant.interrupt.has_cr2) {
        to.payload2 = variant.interrupt.cr2;
        to.flags |= flow::EV_CR2_KNOWN;
      }
      return true;
    case ptev_iret:
      set_ip(to, EventKind::IRET, from, variant.iret.ip);
      return true;
    case ptev_smi:
      set_ip(to, EventKind::SMI, from, variant.smi.ip);
      return true;
    case ptev_rsm:
      set_ip(to, EventKind::RSM, from, variant.rsm.ip);
      return true;
    case ptev_sipi:
      set_kind(to, EventKind::SIPI);
      set_vector(to, variant.sipi.vector);
      return true;
    case ptev_init:
      set_ip(to, EventKind::INIT, from, variant.init.ip);
      return true;
    case ptev_vmentry:
      set_ip(to, EventKind::VMENTRY, from, variant.vmentry.ip);
      return true;
    case ptev_vmexit:
      set_vmexit(from, to);
      return true;
    case ptev_shutdown:
      set_ip(to, EventKind::SHUTDOWN, from, variant.shutdown.ip);
      return true;
    case ptev_uintr:
      set_ip(to, EventKind::UINTR, from, variant.uintr.ip);
      set_vector(to, variant.uintr.vector);
      return true;
    case ptev_uiret:
      set_ip(to, EventKind::UIRET, from, variant.uiret.ip);
      return true;
    default:
      return false;
  }
}
#else
bool to_trace_event(const pt_event&, Event&) noexcept { return false; }
#endif

#if LIBIPT_VERSION >= 0x202
bool to_trigger_event(const pt_event& from, Event& to) noexcept {
  const auto& variant = from.variant;
  switch (from.type) {
    case ptev_trig:
      set_ip(to, EventKind::TRIG, from, variant.trig.ip);
      to.payload = variant.trig.trbv;
      if (!from.ip_suppressed) {
        to.payload2 = variant.trig.icnt;
        to.flags |= flow::EV_ICNT_KNOWN;
      }
      if (variant.trig.mult) to.flags |= flow::EV_MULT;
      return true;
    case ptev_swintr:
      set_ip(to, EventKind::SWINTR, from, variant.swintr.ip);
      set_vector(to, variant.swintr.vector);
      return true;
    case ptev_syscall:
      set_ip(to, EventKind::SYSCALL, from, variant.syscall.ip);
      return true;
    default:
      return false;
  }
}
#else
bool to_trigger_event(const pt_event&, Event&) noexcept { return false; }
#endif

}  // namespace

bool to_event(const pt_event& from, flow::Event& to) noexcept {
  to = Event{};
  if (from.status_update) to.flags |= flow::EV_STATUS;
  return to_flow_event(from, to) || to_state_event(from, to) || to_power_event(from, to) ||
         to_trace_event(from, to) || to_trigger_event(from, to);
}

}  // namespace ptkit::flow::libipt
