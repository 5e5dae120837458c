#include "flow/events/event_binder.h"

#include "packet/decoder.h"

namespace ptkit::flow {

using base::Status;

namespace {

// Packets that do not flush the preceding TNT bits leave the order open.
bool flushes_tnt(EventKind kind) noexcept {
  return kind != EventKind::CBR && kind != EventKind::MNT && kind != EventKind::TICK;
}

// Packets that may come between a TNT packet and the TIPs that were deferred with it.
bool may_interrupt(EventKind kind) noexcept {
  return kind == EventKind::CBR || kind == EventKind::MNT || kind == EventKind::TICK;
}

}  // namespace

bool TntProbe::scan() const {
  packet::PacketDecoder packets(stream_);
  unsigned targets = 0;
  base::Status status = packets.sync_forward(0);
  while (status == base::Status::OK) {
    packet::Packet packet;
    status = packets.next(packet);
    if (status == base::Status::END_OF_STREAM) break;
    if (status != base::Status::OK) {
      status = packets.sync_forward();
      continue;
    }
    if (packet.kind == packet::PacketKind::TNT_8 || packet.kind == packet::PacketKind::TNT_64) return false;
    if (packet.kind == packet::PacketKind::TIP && targets < kEnoughTargets) ++targets;
  }
  return targets >= kEnoughTargets;
}

void EventBinder::tnt(std::uint64_t bits, unsigned count) {
  state_.after_branch = true;
  if (state_.flow == Flow::LOST) {
    state_.bits_dropped = true;
    return;
  }
  if (state_.flow == Flow::OFF) return contradiction(Status::UNEXPECTED_PACKET);
  const Status status = waits_for_target() ? Status::TIP_MISMATCH : walker_.take_bits(bits, count);
  walker_.begin_icnt();
  if (status == Status::OK) return;
  fail(status, nullptr);
  state_.bits_dropped = true;
}

void EventBinder::more_tnt(std::uint64_t bits, unsigned count) {
  if (state_.flow == Flow::ON && waits_for_target()) return walker_.add_bits(bits, count);
  if (state_.flow != Flow::OFF) tnt(bits, count);
}

bool EventBinder::tip(std::uint64_t ip, bool deferred) {
  state_.after_branch = true;
  if (state_.flow == Flow::OFF) {
    contradiction(Status::UNEXPECTED_PACKET);
    if (needs_psb_) return false;
  }
  if (state_.flow == Flow::ON) {
    const bool waited = waits_for_target();
    const Status status = walker_.take_target(ip, deferred);
    walker_.begin_icnt();
    if (status == Status::OK) return !waited && walker_.target_was_near();
    if (!lost_to_missing_tnt(status)) fail(status, nullptr);
    // Bits after the target did not match: the target is useless, and so are targets that were deferred with
    // it.
    state_.bits_dropped = waited;
    if (needs_psb_ || waited) return false;
  }
  if (state_.bits_dropped && state_.tips_deferred) {
    depends_on_deferral_ = true;
    return false;
  }
  emit_unseen_branch(ip);
  resync(ip);
  return false;
}

void EventBinder::event(Event event) {
  if (state_.flow == Flow::ON && waits_for_target() && !may_interrupt(event.kind)) {
    // Bits remain at an indirect branch, and no target followed.
    fail(Status::TIP_MISMATCH, nullptr);
    if (needs_psb_) return;
  }
  if (state_.flow == Flow::LOST) return bind_lost(event);
  const bool ip_reported = ip_known(event);
  const Status status = bind(event);
  if (status == Status::OK) return emit(event, ip_reported);
  if (!lost_to_missing_tnt(status)) fail(status, &event);
  if (!needs_psb_) bind_lost(event);
}

void EventBinder::status(bool enabled, std::uint64_t ip, bool first) {
  Event event;
  event.kind = enabled ? EventKind::ENABLED : EventKind::DISABLED;
  event.flags = EV_STATUS;
  if (enabled) {
    event.flags |= EV_IP_KNOWN;
    event.ip = ip;
  }
  if (first) {
    set_flow(Flow::LOST);
  } else if (state_.flow != Flow::LOST && enabled != on()) {
    contradiction(Status::UNEXPECTED_PACKET);
    if (needs_psb_) return;
  } else if (state_.flow == Flow::ON) {
    const Status status = waits_for_target() ? Status::TIP_MISMATCH : walker_.walk_to_ip(ip);
    if (status != Status::OK && !lost_to_missing_tnt(status)) fail(status, &event);
    if (needs_psb_) return;
  }
  // Earlier findings are void: return compression does not span a PSB.
  walker_.calls().flush();
  if (state_.flow == Flow::LOST) {
    event.finds_flow = true;
    if (enabled) {
      resync(ip);
    } else {
      set_flow(Flow::OFF);
      recovery_.close(walker_.span().offset, nullptr);
    }
  }
  emit(event, enabled);
}

void EventBinder::header_cut(std::optional<bool> enabled, bool first) {
  const bool contradicts = !first && state_.flow != Flow::LOST && enabled != on();
  if (options_.to_next_psb || !enabled || contradicts) return contradiction(Status::UNEXPECTED_PACKET);
  report(Status::UNEXPECTED_PACKET, static_cast<std::uint64_t>(packet_), 0);
}

void EventBinder::pause() {
  const std::uint64_t ip = walker_.ip();
  recovery_.open(walker_.span().offset, state_.flow == Flow::ON ? &ip : nullptr, GapCause::OVERFLOW,
                 Status::OVERFLOW_LOST);
  set_flow(Flow::LOST);
  walker_.drop_bits();
  walker_.calls().flush();
  left_call_ip_ = 0;
  walker_.end_icnt();
}

void EventBinder::lose(GapCause cause, Status code) {
  const std::uint64_t ip = walker_.ip();
  recovery_.open(walker_.span().offset, state_.flow == Flow::ON ? &ip : nullptr, cause, code);
  set_flow(Flow::LOST);
  walker_.drop_bits();
  walker_.calls().reset();
  left_call_ip_ = 0;
  walker_.set_in_tx(false);
  walker_.end_icnt();
}

void EventBinder::lose_start(GapCause cause, Status code) {
  lose(cause, code);
  state_.bits_dropped = true;  // later TIPs may have been deferred over earlier bits
}

void EventBinder::finish() {
  if (state_.flow == Flow::ON && waits_for_target()) walker_.drop_bits();
  recovery_.close(walker_.span().offset, nullptr);
}

void EventBinder::contradiction(Status code) { contradiction(code, static_cast<std::uint64_t>(packet_), 0); }

// Emits an error row at the current position, which stays.
void EventBinder::report(Status code, std::uint64_t argument, std::uint64_t argument2) {
  const std::uint64_t ip = walker_.ip();
  recovery_.error(walker_.span(), code, state_.flow == Flow::ON ? &ip : nullptr, argument, argument2,
                  &walker_.view());
}

void EventBinder::contradiction(Status code, std::uint64_t argument, std::uint64_t argument2) {
  report(code, argument, argument2);
  lose(GapCause::ERROR, code);
  if (options_.to_next_psb) needs_psb_ = true;
}

void EventBinder::fail(Status status, const Event* event) {
  const bool wanted = status == Status::FUP_MISMATCH && event != nullptr;
  const bool async =
      wanted && (event->kind == EventKind::ASYNC_BRANCH || event->kind == EventKind::ASYNC_DISABLED);
  contradiction(status, static_cast<std::uint64_t>(packet_),
                wanted ? (async ? event->payload : event->ip) : 0);
}

// Without TNT packets, a walk that reaches a conditional branch ends there. That is no error.
bool EventBinder::lost_to_missing_tnt(Status status) {
  if (status != Status::TNT_MISMATCH && status != Status::FUP_MISMATCH) return false;
  if (!walker_.at_branch() || walker_.branch_end() != Terminator::COND) return false;
  if (!state_.tnt_disabled && !probe_.no_tnt()) return false;
  state_.tnt_disabled = true;
  lose(GapCause::TNT_DISABLED, Status::OK);
  return true;
}

// Emits the branch to a target after conditional branches that were not recorded (DisTNT). The branch was not
// walked. It is still known if all paths from the conditional branch lead to the same indirect branch.
void EventBinder::emit_unseen_branch(std::uint64_t to_ip) {
  if (!recovery_.is_open() || recovery_.gap()->cause != GapCause::TNT_DISABLED) return;
  const BasicBlock* only = walker_.only_indirect_from(recovery_.gap()->from_ip);
  if (only != nullptr) {
    walker_.emit_unseen_branch(*only, to_ip);
  } else {
    walker_.emit_branch(BranchKind::JUMP_INDIRECT, 0, to_ip, TO_KNOWN | TAKEN);
  }
}

// Without code nothing can be walked: packets are enabled, but the position stays unknown.
void EventBinder::resync_without_code(std::uint64_t ip) {
  walker_.jump_to(ip);
  set_flow(Flow::LOST);
  if (!state_.no_code_reported) {
    state_.no_code_reported = true;
    recovery_.error(walker_.span(), Status::NO_CODE, &ip, 0, 0, &walker_.view());
  }
  recovery_.open(walker_.span().offset, &ip, GapCause::ERROR, Status::NO_CODE);
}

void EventBinder::resync(std::uint64_t ip) {
  if (options_.no_code) return resync_without_code(ip);
  set_flow(Flow::ON);
  state_.bits_dropped = false;
  walker_.drop_bits();
  walker_.jump_to(ip);
  walker_.begin_icnt();
  recovery_.close(walker_.span().offset, &ip);
}

void EventBinder::switch_off(std::uint64_t resume_ip) {
  set_flow(Flow::OFF, resume_ip);
  walker_.drop_bits();
  walker_.calls().flush();  // return compression does not span disabled packets
}

void EventBinder::emit(Event event, bool ip_reported) {
  if (flushes_tnt(event.kind) && !waits_for_target()) {
    StreamSpan span = walker_.span();
    span.since = span.offset;
    walker_.set_span(span);
  }
  event.span = walker_.span();
  sink_.on_event(event);
  move_icnt(event.kind, ip_reported);
  state_.after_branch = false;
}

// ICNT of TRIG packets counts instructions from the last packet with an IP.
void EventBinder::move_icnt(EventKind kind, bool ip_reported) {
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
      walker_.end_icnt();
      return;
    default:
      if (!ip_reported && kind != EventKind::TRIG) return;
      walker_.begin_icnt();
  }
}

void EventBinder::apply_state(const Event& event) {
  switch (event.kind) {
    case EventKind::PAGING:
    case EventKind::ASYNC_PAGING:
      context_.set_cr3(walker_.span().offset, event.payload);
      break;
    case EventKind::EXEC_MODE:
      context_.set_mode(static_cast<code::insn::ExecMode>(event.payload));
      break;
    case EventKind::TSX_BEGIN:
    case EventKind::TSX_COMMIT:
    case EventKind::TSX_ABORT:
      walker_.set_in_tx(event.kind == EventKind::TSX_BEGIN);
      state_.abort_ip.reset();
      if (event.kind == EventKind::TSX_ABORT && ip_known(event)) state_.abort_ip = event.ip;
      break;
    default:
      break;
  }
}

}  // namespace ptkit::flow
