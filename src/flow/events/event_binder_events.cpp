// Binds each kind of event to an instruction.
#include "flow/events/event_binder.h"

namespace ptkit::flow {

using base::Status;

namespace {

constexpr unsigned kReachLimit = 256;  // blocks that are searched for erratum BDM64

}  // namespace

Status EventBinder::bind(Event& event) {
  switch (event.kind) {
    case EventKind::ENABLED:
      return bind_enabled(event);
    case EventKind::DISABLED:
      return bind_disabled(event);
    case EventKind::ASYNC_DISABLED:
    case EventKind::ASYNC_BRANCH:
      return bind_async(event);
    case EventKind::OVERFLOW:
      return bind_overflow(event);
    case EventKind::STOP:
      // Packets are disabled before TraceStop.
      if (state_.flow == Flow::ON) return Status::UNEXPECTED_PACKET;
      recovery_.open(walker_.span().offset, nullptr, GapCause::TRACE_STOP, Status::OK);
      return Status::OK;
    case EventKind::PAGING:
      return bind_at(event, BindingInsn::PIP, true);
    case EventKind::VMCS:
      return bind_at(event, BindingInsn::VMCS, true);
    case EventKind::PTWRITE:
      return options_.ptw_disabled ? Status::OK : bind_at(event, BindingInsn::PTWRITE, true);
    case EventKind::IRET:
      return bind_at(event, BindingInsn::IRET, true);
    case EventKind::UIRET:
      return bind_at(event, BindingInsn::UIRET, true);
    case EventKind::VMENTRY:
      return bind_at(event, BindingInsn::VMENTRY, true);
    case EventKind::SWINTR:
      return bind_at(event, BindingInsn::SWINT, false);
    case EventKind::SYSCALL:
      return bind_at(event, BindingInsn::SYSCALL, false);
    case EventKind::TRIG:
      return bind_trig(event);
    case EventKind::TSX_BEGIN:
    case EventKind::TSX_COMMIT:
    case EventKind::TSX_ABORT:
      return bind_tx(event);
    default:
      return bind_at_ip(event);
  }
}

Status EventBinder::bind_at_ip(const Event& event) {
  if (state_.flow == Flow::ON && ip_known(event)) {
    if (const Status status = walker_.walk_to_ip(event.ip); status != Status::OK) return status;
  }
  apply_state(event);
  return Status::OK;
}

// Binds an event to an instruction: the one at the event's IP, or the next of its kind. `after`: the event
// happens after the instruction.
Status EventBinder::bind_at(Event& event, BindingInsn insn_kind, bool after) {
  if (state_.flow == Flow::ON) {
    if (ip_known(event)) {
      if (const Status status = walker_.walk_to_ip(event.ip); status != Status::OK) return status;
      walker_.unbind_all();
      if (after && !walker_.at_branch()) {
        if (const Status status = walker_.walk_over(); status != Status::OK) return status;
      }
    } else {
      // Several packets may belong to one instruction (PIP and VMCS of a VM entry), but not two of the same
      // kind.
      if (!walker_.at_binding_insn(insn_kind) || walker_.is_bound(event.kind)) {
        if (const Status status = walker_.walk_to_binding_insn(insn_kind); status != Status::OK)
          return status;
      }
      event.ip = walker_.binding_ip();
      event.flags |= EV_IP_KNOWN;
    }
    walker_.bind(event.kind);
  }
  apply_state(event);
  return Status::OK;
}

Status EventBinder::bind_enabled(Event& event) {
  if (state_.flow == Flow::ON) return Status::UNEXPECTED_PACKET;
  if (!ip_known(event)) return Status::NO_IP;
  if (state_.resume_ip != 0 && state_.resume_ip == event.ip) event.flags |= EV_RESUMED;
  if (left_call_ip_ != 0) walker_.filter().note_check(left_call_ip_ == event.ip, walker_.span().offset);
  left_call_ip_ = 0;
  resync(event.ip);
  return Status::OK;
}

Status EventBinder::bind_disabled(Event& event) {
  if (state_.flow == Flow::OFF) return Status::UNEXPECTED_PACKET;
  if (state_.tnt_disabled) {
    // The branch that left may follow a conditional branch that was not recorded.
    if (const Status status = walker_.walk_to_decision(); status != Status::OK) return status;
    if (walker_.branch_end() == Terminator::COND) return Status::TNT_MISMATCH;
  }
  Status status = walker_.leave(ip_known(event) ? &event.ip : nullptr);
  if (status == Status::OK && !ip_known(event) && walker_.filter().watches()) watch_for_filter();
  if (status == Status::TNT_MISMATCH && (walker_.branch_end() != Terminator::COND || !probe_.no_tnt())) {
    leave_elsewhere(event);
    return Status::OK;
  }
  if (status == Status::OK) switch_off(walker_.resume_ip());
  return status;
}

// Without an address filter, packets are disabled at a far transfer or MOV CR3, and go on elsewhere than
// behind a direct call that was followed: its callee did not return.
void EventBinder::watch_for_filter() {
  const std::uint64_t offset = walker_.span().offset;
  if (walker_.left_by_near_branch()) return walker_.filter().note_check(true, offset);
  const std::optional<std::uint64_t> call = walker_.calls().top();
  if (!call || *call == walker_.resume_ip()) return walker_.filter().note_check(false, offset);
  left_call_ip_ = *call;  // the next TIP.PGE tells
}

// A branch that did not disable packets: the code is not what executed, or packets are missing. Without
// address ranges no near branch does so. With them, a conditional branch does not if the TIP.PGD has an IP
// that is neither of its targets: only direct, indirect and far branches lead to the IP of a TIP.PGD without
// FUP (manual, "Packet Generation Under Different Enable Conditions"). No gap follows, because packets are
// disabled from here on in any case.
void EventBinder::leave_elsewhere(const Event& event) {
  const std::uint64_t from = walker_.ip();
  if (walker_.filter().absent()) {
    walker_.jump_to(from);  // the branch has no row
  } else {
    walker_.leave_at_branch(&event.ip);
  }
  recovery_.error(walker_.span(), Status::TNT_MISMATCH, &from, static_cast<std::uint64_t>(packet_), event.ip,
                  &walker_.view());
  switch_off(event.ip);
}

void EventBinder::emit_async(const Event& event) {
  const bool aborted = state_.abort_ip == event.payload;
  state_.abort_ip.reset();
  std::uint8_t flags = FROM_KNOWN | TAKEN;
  if (ip_known(event)) flags |= TO_KNOWN;
  walker_.emit_branch(aborted ? BranchKind::TX_ABORT : BranchKind::ASYNC, event.payload, event.ip, flags);
}

Status EventBinder::bind_async(Event& event) {
  if (state_.flow == Flow::OFF) return Status::UNEXPECTED_PACKET;
  if (const Status status = walker_.walk_to_ip(event.payload); status != Status::OK) return status;
  if (event.kind == EventKind::ASYNC_DISABLED) {
    if (options_.errata.skd022) {
      // A VM entry that clears TraceEn may send a superfluous FUP.
      const code::insn::InsnKind kind = walker_.kind_at(event.payload);
      if (kind == code::insn::InsnKind::VMLAUNCH || kind == code::insn::InsnKind::VMRESUME) {
        event.kind = EventKind::DISABLED;
        event.payload = 0;
        return bind_disabled(event);
      }
    }
    emit_async(event);
    switch_off(event.payload);
    return Status::OK;
  }
  if (!ip_known(event)) return Status::NO_IP;
  emit_async(event);
  walker_.drop_bits();
  walker_.jump_to(event.ip);
  return Status::OK;
}

Status EventBinder::bind_overflow(const Event& event) {
  walker_.set_in_tx(false);
  if (ip_known(event)) {
    resync(event.ip);
  } else {
    set_flow(Flow::OFF);
  }
  return Status::OK;
}

Status EventBinder::bind_tx(const Event& event) {
  if (state_.flow == Flow::ON && ip_known(event)) {
    const bool corrupt = options_.errata.bdm64 && event.kind == EventKind::TSX_ABORT && state_.after_branch &&
                         !walker_.reaches(walker_.ip(), event.ip, kReachLimit);
    if (corrupt) {
      // The packet of a branch right before a transaction abort may be wrong: use the IP of the abort.
      walker_.jump_to(event.ip);
    } else if (const Status status = walker_.walk_to_ip(event.ip); status != Status::OK) {
      return status;
    }
  }
  apply_state(event);
  return Status::OK;
}

Status EventBinder::bind_trig(Event& event) {
  if (state_.flow != Flow::ON) return Status::OK;
  if (ip_known(event)) return walker_.walk_to_ip(event.ip);
  if ((event.flags & EV_ICNT_KNOWN) == 0) return Status::OK;
  // ICNT counts instructions from the last packet with an IP. Some of these instructions may be walked
  // already.
  const std::optional<std::uint64_t> walked = walker_.icnt();
  if (!walked || *walked > event.payload2) return Status::BAD_PACKET;
  if (const Status status = walker_.walk_count(event.payload2 - *walked); status != Status::OK) return status;
  event.ip = walker_.ip();
  event.flags |= EV_IP_KNOWN;
  return Status::OK;
}

void EventBinder::bind_lost_branch(const Event& event) {
  resync(event.payload);
  emit_async(event);
  if (event.kind == EventKind::ASYNC_DISABLED) {
    switch_off(event.payload);
    recovery_.close(walker_.span().offset, &event.payload);
  } else if (ip_known(event)) {
    walker_.jump_to(event.ip);
  } else {
    contradiction(Status::NO_IP);
  }
}

// Binds an event while the position is unknown. An event with an IP ends that.
void EventBinder::bind_lost(Event event) {
  switch (event.kind) {
    case EventKind::ASYNC_DISABLED:
    case EventKind::ASYNC_BRANCH:
      bind_lost_branch(event);
      break;
    case EventKind::DISABLED:
    case EventKind::STOP:
      switch_off(0);
      recovery_.close(walker_.span().offset, ip_known(event) ? &event.ip : nullptr);
      break;
    case EventKind::OVERFLOW:
      if (bind_overflow(event) != Status::OK) return;
      break;
    case EventKind::PTWRITE:
    case EventKind::IRET:
    case EventKind::UIRET:
    case EventKind::VMENTRY:
      if (ip_known(event)) {
        resync(event.ip);
        if (const Status status = walker_.walk_over(); status != Status::OK) fail(status, &event);
        walker_.bind(event.kind);
        if (needs_psb_) return;
      }
      break;
    default:
      if (ip_known(event)) resync(event.ip);
      apply_state(event);
      break;
  }
  emit(event, ip_known(event));
}

}  // namespace ptkit::flow
