#include "flow/placer.h"

namespace ptkit::flow {

using base::Status;

namespace {

bool ip_known(const Event& event) noexcept { return (event.flags & EV_IP_KNOWN) != 0; }

// Packets that do not force out the TNT bits before them leave open what came first.
bool flushes_tnt(EventKind kind) noexcept {
  return kind != EventKind::CBR && kind != EventKind::MNT && kind != EventKind::TICK;
}

// May stand between a TNT packet and the TIPs that were deferred with it.
bool may_interrupt(EventKind kind) noexcept {
  return kind == EventKind::CBR || kind == EventKind::MNT || kind == EventKind::TICK;
}

}  // namespace

void Placer::tnt(std::uint64_t bits, unsigned count) {
  after_branch_ = true;
  if (state_ == State::LOST) {
    bits_dropped_ = true;
    return;
  }
  if (state_ == State::OFF) return contradiction(Status::UNEXPECTED_PACKET);
  const Status status = waits_for_target() ? Status::TIP_MISMATCH : walker_.take_bits(bits, count);
  trig_anchored_ = true;
  trig_anchor_ = walker_.instructions();
  if (status == Status::OK) return;
  fail(status, nullptr);
  bits_dropped_ = true;
}

void Placer::more_tnt(std::uint64_t bits, unsigned count) {
  if (state_ == State::ON && waits_for_target()) return walker_.add_bits(bits, count);
  if (state_ != State::OFF) tnt(bits, count);
}

bool Placer::tip(std::uint64_t ip, bool deferred) {
  after_branch_ = true;
  if (state_ == State::OFF) {
    contradiction(Status::UNEXPECTED_PACKET);
    if (wants_psb_) return false;
  }
  if (state_ == State::ON) {
    const bool waited = waits_for_target();
    const Status status = walker_.take_target(ip, deferred);
    trig_anchored_ = true;
    trig_anchor_ = walker_.instructions();
    if (status == Status::OK) return !waited && walker_.target_was_near();
    if (!lost_to_missing_tnt(status)) fail(status, nullptr);
    // Bits after the target did not fit: it is of no use, nor are targets that were deferred with it.
    bits_dropped_ = waited;
    if (wants_psb_ || waited) return false;
  }
  if (bits_dropped_ && tips_deferred_) {
    relied_on_deferral_ = true;
    return false;
  }
  give_unseen_branch(ip);
  anchor(ip);
  return false;
}

void Placer::event(Event event) {
  if (state_ == State::ON && waits_for_target() && !may_interrupt(event.kind)) {
    // Bits were left at an indirect branch, and its target did not follow.
    fail(Status::TIP_MISMATCH, nullptr);
    if (wants_psb_) return;
  }
  if (state_ == State::LOST) return place_lost(event);
  const bool ip_told = ip_known(event);
  const Status status = place(event);
  if (status == Status::OK) return give(event, ip_told);
  if (!lost_to_missing_tnt(status)) fail(status, &event);
  if (!wants_psb_) place_lost(event);
}

void Placer::status(bool enabled, std::uint64_t ip, bool first) {
  Event event;
  event.kind = enabled ? EventKind::ENABLED : EventKind::DISABLED;
  event.flags = EV_STATUS;
  if (enabled) {
    event.flags |= EV_IP_KNOWN;
    event.ip = ip;
  }
  if (first) {
    state_ = State::LOST;
  } else if (state_ != State::LOST && enabled != on()) {
    contradiction(Status::UNEXPECTED_PACKET);
    if (wants_psb_) return;
  } else if (state_ == State::ON) {
    const Status status = waits_for_target() ? Status::TIP_MISMATCH : walker_.walk_to_ip(ip);
    if (status != Status::OK && !lost_to_missing_tnt(status)) fail(status, &event);
    if (wants_psb_) return;
  }
  // What was found out before does not count any more: return compression does not reach across a PSB.
  walker_.calls().flush();
  if (state_ == State::LOST) {
    if (enabled) {
      anchor(ip);
    } else {
      state_ = State::OFF;
      resume_ip_ = 0;
      recovery_.close(walker_.place().offset, nullptr);
    }
  }
  give(event, enabled);
}

void Placer::pause() {
  const std::uint64_t ip = walker_.ip();
  recovery_.open(walker_.place().offset, state_ == State::ON ? &ip : nullptr, GapCause::OVERFLOW,
                 Status::OVERFLOW_LOST);
  state_ = State::LOST;
  walker_.drop_bits();
  walker_.calls().flush();
  trig_anchored_ = false;
}

void Placer::lose(GapCause cause, Status code) {
  walker_.pay_for_error();
  const std::uint64_t ip = walker_.ip();
  recovery_.open(walker_.place().offset, state_ == State::ON ? &ip : nullptr, cause, code);
  state_ = State::LOST;
  walker_.drop_bits();
  walker_.calls().reset();
  walker_.set_in_tx(false);
  trig_anchored_ = false;
}

void Placer::finish() {
  if (state_ == State::ON && waits_for_target()) walker_.drop_bits();
  recovery_.close(walker_.place().offset, nullptr);
}

void Placer::contradiction(Status code) { contradiction(code, static_cast<std::uint64_t>(packet_), 0); }

void Placer::contradiction(Status code, std::uint64_t argument, std::uint64_t argument2) {
  const std::uint64_t ip = walker_.ip();
  recovery_.error(walker_.place(), code, state_ == State::ON ? &ip : nullptr, argument, argument2,
                  &walker_.view());
  lose(GapCause::ERROR, code);
  if (options_.to_next_psb) wants_psb_ = true;
}

void Placer::fail(Status status, const Event* event) {
  const bool wanted = status == Status::FUP_MISMATCH && event != nullptr;
  const bool async =
      wanted && (event->kind == EventKind::ASYNC_BRANCH || event->kind == EventKind::ASYNC_DISABLED);
  contradiction(status, static_cast<std::uint64_t>(packet_),
                wanted ? (async ? event->payload : event->ip) : 0);
}

// Without TNT packets a walk that meets a conditional branch is at its end: that is no error.
bool Placer::lost_to_missing_tnt(Status status) {
  if (status != Status::TNT_MISMATCH && status != Status::FUP_MISMATCH) return false;
  if (!walker_.at_branch() || walker_.branch_end() != RunEnd::COND) return false;
  if (!options_.tnt_disabled && !probe_.no_tnt()) return false;
  options_.tnt_disabled = true;
  lose(GapCause::TNT_DISABLED, Status::OK);
  return true;
}

// A target whose branch was not seen because conditional branches before it were not recorded. It can still
// be told which branch it was if all ways from the conditional lead to the same one.
void Placer::give_unseen_branch(std::uint64_t to_ip) {
  if (!recovery_.is_open() || recovery_.gap().cause != GapCause::TNT_DISABLED) return;
  const Run* only = walker_.only_indirect_from(recovery_.gap().from_ip);
  if (only != nullptr) {
    walker_.give_unseen_branch(*only, to_ip);
  } else {
    walker_.give_branch(BranchKind::JUMP_INDIRECT, 0, to_ip, TO_KNOWN | TAKEN);
  }
}

// Without any code nothing can be walked: packets are on, but where execution is stays open.
void Placer::anchor_without_code(std::uint64_t ip) {
  walker_.jump_to(ip);
  state_ = State::LOST;
  if (!no_code_told_) {
    no_code_told_ = true;
    recovery_.error(walker_.place(), Status::NO_CODE, &ip, 0, 0, &walker_.view());
  }
  recovery_.open(walker_.place().offset, &ip, GapCause::ERROR, Status::NO_CODE);
}

void Placer::anchor(std::uint64_t ip) {
  if (options_.no_code) return anchor_without_code(ip);
  state_ = State::ON;
  bits_dropped_ = false;
  walker_.drop_bits();
  walker_.jump_to(ip);
  trig_anchored_ = true;
  trig_anchor_ = walker_.instructions();
  recovery_.close(walker_.place().offset, &ip);
}

void Placer::switch_off(std::uint64_t resume_ip) {
  state_ = State::OFF;
  resume_ip_ = resume_ip;
  walker_.drop_bits();
  walker_.calls().flush();  // returns are not compressed across a time without packets
}

void Placer::give(Event event, bool ip_told) {
  if (flushes_tnt(event.kind) && !waits_for_target()) {
    Place place = walker_.place();
    place.since = place.offset;
    walker_.set_place(place);
  }
  event.place = walker_.place();
  sink_.on_event(event);
  move_trig_anchor(event.kind, ip_told);
  after_branch_ = false;
}

// Places from which TRIG packets count instructions: wherever a packet told an IP.
void Placer::move_trig_anchor(EventKind kind, bool ip_told) {
  switch (kind) {
    case EventKind::PAGING:
    case EventKind::VMCS:
    case EventKind::SIPI:
    case EventKind::CBR:
    case EventKind::MNT:
    case EventKind::STOP:
    case EventKind::PWRE:
    case EventKind::PWRX:
      return;
    case EventKind::DISABLED:
    case EventKind::ASYNC_DISABLED:
      trig_anchored_ = false;
      return;
    default:
      if (!ip_told && kind != EventKind::TRIG) return;
      trig_anchored_ = true;
      trig_anchor_ = walker_.instructions();
  }
}

void Placer::apply_state(const Event& event) {
  switch (event.kind) {
    case EventKind::PAGING:
    case EventKind::ASYNC_PAGING:
      context_.set_cr3(walker_.place().offset, event.payload);
      break;
    case EventKind::EXEC_MODE:
      context_.set_mode(static_cast<insn::ExecMode>(event.payload));
      break;
    case EventKind::TSX_BEGIN:
    case EventKind::TSX_COMMIT:
    case EventKind::TSX_ABORT:
      walker_.set_in_tx(event.kind == EventKind::TSX_BEGIN);
      abort_known_ = event.kind == EventKind::TSX_ABORT && ip_known(event);
      abort_ip_ = event.ip;
      break;
    default:
      break;
  }
}

}  // namespace ptkit::flow
