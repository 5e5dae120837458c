// Where in the code each kind of event happened.
#include "flow/placer.h"

namespace ptkit::flow {

using base::Status;

namespace {

bool ip_known(const Event& event) noexcept { return (event.flags & EV_IP_KNOWN) != 0; }

constexpr unsigned kReachLimit = 256;  // runs to look at for erratum BDM64

}  // namespace

Status Placer::place(Event& event) {
  switch (event.kind) {
    case EventKind::ENABLED:
      return place_enabled(event);
    case EventKind::DISABLED:
      return place_disabled(event);
    case EventKind::ASYNC_DISABLED:
    case EventKind::ASYNC_BRANCH:
      return place_async(event);
    case EventKind::OVERFLOW:
      return place_overflow(event);
    case EventKind::STOP:
      // Packets are off before tracing stops.
      if (state_ == State::ON) return Status::UNEXPECTED_PACKET;
      recovery_.open(walker_.place().offset, nullptr, GapCause::TRACE_STOP, Status::OK);
      return Status::OK;
    case EventKind::PAGING:
      return place_at(event, Anchor::PIP, true);
    case EventKind::VMCS:
      return place_at(event, Anchor::VMCS, true);
    case EventKind::PTWRITE:
      return options_.ptw_disabled ? Status::OK : place_at(event, Anchor::PTWRITE, true);
    case EventKind::IRET:
      return place_at(event, Anchor::IRET, true);
    case EventKind::UIRET:
      return place_at(event, Anchor::UIRET, true);
    case EventKind::VMENTRY:
      return place_at(event, Anchor::VMENTRY, true);
    case EventKind::SWINTR:
      return place_at(event, Anchor::SWINT, false);
    case EventKind::SYSCALL:
      return place_at(event, Anchor::SYSCALL, false);
    case EventKind::TRIG:
      return place_trig(event);
    case EventKind::TSX_BEGIN:
    case EventKind::TSX_COMMIT:
    case EventKind::TSX_ABORT:
      return place_tx(event);
    default:
      return place_at_ip(event);
  }
}

Status Placer::place_at_ip(const Event& event) {
  if (state_ == State::ON && ip_known(event)) {
    if (const Status status = walker_.walk_to_ip(event.ip); status != Status::OK) return status;
  }
  apply_state(event);
  return Status::OK;
}

// Events that belong to an instruction: the one at their IP, or the next of its kind. `behind`: they come
// after it.
Status Placer::place_at(Event& event, Anchor anchor, bool behind) {
  if (state_ == State::ON) {
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(event.kind);
    if (ip_known(event)) {
      if (const Status status = walker_.walk_to_ip(event.ip); status != Status::OK) return status;
      bound_ = 0;
      if (behind && !walker_.at_branch()) {
        if (const Status status = walker_.walk_over(); status != Status::OK) return status;
      }
    } else {
      // Several packets may belong to one instruction (PIP and VMCS of a VM entry), but not two of the same
      // kind.
      if (!walker_.at_anchor(anchor) || (bound_ & bit) != 0) {
        bound_ = 0;
        if (const Status status = walker_.walk_to_anchor(anchor); status != Status::OK) return status;
      }
      event.ip = walker_.anchor_ip();
      event.flags |= EV_IP_KNOWN;
    }
    bound_ |= bit;
  }
  apply_state(event);
  return Status::OK;
}

Status Placer::place_enabled(Event& event) {
  if (state_ == State::ON) return Status::UNEXPECTED_PACKET;
  if (!ip_known(event)) return Status::NO_IP;
  if (resume_ip_ != 0 && resume_ip_ == event.ip) event.flags |= EV_RESUMED;
  anchor(event.ip);
  return Status::OK;
}

Status Placer::place_disabled(Event& event) {
  if (state_ == State::OFF) return Status::UNEXPECTED_PACKET;
  if (options_.tnt_disabled) {
    // The branch that left may stand behind a conditional one that was not recorded.
    if (const Status status = walker_.walk_to_decision(); status != Status::OK) return status;
    if (walker_.branch_end() == RunEnd::COND) return Status::TNT_MISMATCH;
  }
  const Status status = walker_.leave(ip_known(event) ? &event.ip : nullptr);
  if (status == Status::OK) switch_off(walker_.resume_ip());
  return status;
}

void Placer::give_async(const Event& event) {
  const bool aborted = abort_known_ && abort_ip_ == event.payload;
  abort_known_ = false;
  std::uint8_t flags = FROM_KNOWN | TAKEN;
  if (ip_known(event)) flags |= TO_KNOWN;
  walker_.give_branch(aborted ? BranchKind::TX_ABORT : BranchKind::ASYNC, event.payload, event.ip, flags);
}

Status Placer::place_async(Event& event) {
  if (state_ == State::OFF) return Status::UNEXPECTED_PACKET;
  if (const Status status = walker_.walk_to_ip(event.payload); status != Status::OK) return status;
  if (event.kind == EventKind::ASYNC_DISABLED) {
    if (options_.errata.skd022) {
      // VM entry that clears TraceEn may send a FUP that should not be there.
      const insn::InsnKind kind = walker_.kind_at(event.payload);
      if (kind == insn::InsnKind::VMLAUNCH || kind == insn::InsnKind::VMRESUME) {
        event.kind = EventKind::DISABLED;
        event.payload = 0;
        return place_disabled(event);
      }
    }
    give_async(event);
    switch_off(event.payload);
    return Status::OK;
  }
  if (!ip_known(event)) return Status::NO_IP;
  give_async(event);
  walker_.drop_bits();
  walker_.jump_to(event.ip);
  return Status::OK;
}

Status Placer::place_overflow(const Event& event) {
  walker_.set_in_tx(false);
  if (ip_known(event)) {
    anchor(event.ip);
  } else {
    state_ = State::OFF;
    resume_ip_ = 0;
  }
  return Status::OK;
}

Status Placer::place_tx(const Event& event) {
  if (state_ == State::ON && ip_known(event)) {
    const bool corrupt = options_.errata.bdm64 && event.kind == EventKind::TSX_ABORT && after_branch_ &&
                         !walker_.reaches(walker_.ip(), event.ip, kReachLimit);
    if (corrupt) {
      // The packet of a branch right before a transaction abort may be wrong: believe the abort.
      walker_.jump_to(event.ip);
    } else if (const Status status = walker_.walk_to_ip(event.ip); status != Status::OK) {
      return status;
    }
  }
  apply_state(event);
  return Status::OK;
}

Status Placer::place_trig(Event& event) {
  if (state_ != State::ON) return Status::OK;
  if (ip_known(event)) return walker_.walk_to_ip(event.ip);
  if ((event.flags & EV_ICNT_KNOWN) == 0) return Status::OK;
  // ICNT counts instructions from the last place whose IP a packet told; some of them may have been walked
  // already.
  const std::uint64_t walked = walker_.instructions() - trig_anchor_;
  if (!trig_anchored_ || walked > event.payload2) return Status::BAD_PACKET;
  if (const Status status = walker_.walk_count(event.payload2 - walked); status != Status::OK) return status;
  event.ip = walker_.ip();
  event.flags |= EV_IP_KNOWN;
  return Status::OK;
}

void Placer::place_lost_branch(const Event& event) {
  anchor(event.payload);
  give_async(event);
  if (event.kind == EventKind::ASYNC_DISABLED) {
    switch_off(event.payload);
    recovery_.close(walker_.place().offset, &event.payload);
  } else if (ip_known(event)) {
    walker_.jump_to(event.ip);
  } else {
    contradiction(Status::NO_IP);
  }
}

// Places an event while it is not known where execution is. An IP puts an end to that.
void Placer::place_lost(Event event) {
  switch (event.kind) {
    case EventKind::ASYNC_DISABLED:
    case EventKind::ASYNC_BRANCH:
      place_lost_branch(event);
      break;
    case EventKind::DISABLED:
    case EventKind::STOP:
      switch_off(0);
      recovery_.close(walker_.place().offset, ip_known(event) ? &event.ip : nullptr);
      break;
    case EventKind::OVERFLOW:
      if (place_overflow(event) != Status::OK) return;
      break;
    case EventKind::PTWRITE:
    case EventKind::IRET:
    case EventKind::UIRET:
    case EventKind::VMENTRY:
      if (ip_known(event)) {
        anchor(event.ip);
        if (const Status status = walker_.walk_over(); status != Status::OK) fail(status, &event);
        bound_ = std::uint64_t{1} << static_cast<unsigned>(event.kind);
        if (wants_psb_) return;
      }
      break;
    default:
      if (ip_known(event)) anchor(event.ip);
      apply_state(event);
      break;
  }
  give(event, ip_known(event));
}

}  // namespace ptkit::flow
