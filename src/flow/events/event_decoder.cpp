#include "flow/events/event_decoder.h"

#include <algorithm>
#include <utility>

#include "flow/events/plain_packets.h"

namespace ptkit::flow {

using base::Status;

namespace {

bool ip_is_known(const packet::Packet& packet) noexcept {
  return (packet.flags & packet::Packet::IP_KNOWN) != 0;
}

// True if the packet has a part of an IP, and no full IP precedes it: the stream began without a PSB.
bool lacks_last_ip(const packet::Packet& packet) noexcept {
  return !ip_is_known(packet) && packet.payload2 != 0;
}

constexpr std::uint8_t kAnyIp = AT_FUP | AT_FUP_BOUND | AT_TIP;

}  // namespace

Event EventDecoder::make(EventKind kind) noexcept {
  Event event;
  event.kind = kind;
  return event;
}

Event EventDecoder::make_tsx(const Packet& mode) noexcept {
  const bool in_tx = (mode.payload & 1U) != 0;
  const bool aborted = (mode.payload & 2U) != 0;
  return make(aborted ? EventKind::TSX_ABORT : in_tx ? EventKind::TSX_BEGIN : EventKind::TSX_COMMIT);
}

void EventDecoder::wait(std::uint8_t binding, const Event& event) {
  if (pending_.add(binding, event)) return;
  pending_.clear();
  binder_.contradiction(Status::UNEXPECTED_PACKET);
}

void EventDecoder::restart() {
  pending_.clear();
  pebs_.clear();
  pebs_waits_ = false;
  header_.clear();
  in_header_ = false;
  state_.tip_watch = TipWatch::NONE;
  state_.tip_order.other();
  state_.tnt_before.reset();
  state_.mode.reset();
  state_.first_psb = true;
}

void EventDecoder::begin(const Packet& packet, bool tnt) {
  // A processor emits a full TNT packet with its last branch. After a partial TNT packet, direct branches may
  // be older than that packet, and than TIPs that were deferred and emitted with it. Conditional branches of
  // the next TNT packet are not older.
  std::uint64_t bits_since = state_.since;
  if (tnt && state_.tnt_before) {
    bits_since = std::max(state_.since, *state_.tnt_before);
    if (!may_be_late(packets_.stream().data() + *state_.tnt_before)) state_.since = bits_since;
  }
  context_.apply_switches_up_to(packet.offset);
  watch_tips(packet);
  watch_tip_order(packet);
  walker_.begin_packet(StreamSpan{state_.since, packet.offset}, bits_since);
  binder_.set_packet(packet.kind);
}

void EventDecoder::end(const Packet& packet, bool tnt) {
  // Bits and targets after a timing packet are older than it, so they use the code from before it.
  if (std::exchange(timing_seen_, false)) context_.time_moved(packet.offset, binder_.on());
  note_since(packet, tnt);
}

void EventDecoder::apply_rest(const Packet& tnt, std::uint64_t bits, unsigned count) {
  begin(tnt, true);
  if (count != tnt.payload2) walker_.continue_packet();
  binder_.tnt(bits, count);
  end(tnt, true);
}

void EventDecoder::apply(const Packet& packet) {
  const bool tnt = packet.kind == PacketKind::TNT_8 || packet.kind == PacketKind::TNT_64;
  begin(packet, tnt);
  tip_may_be_deferred_ = false;
  switch (packet.kind) {
    case PacketKind::PAD:
      return;
    case PacketKind::TNT_8:
    case PacketKind::TNT_64:
      if (!in_header_) on_tnt(packet);
      break;
    case PacketKind::TIP:
      if (!in_header_) on_tip(packet);
      break;
    case PacketKind::TSC:
    case PacketKind::MTC:
    case PacketKind::TMA:
    case PacketKind::CYC:
    case PacketKind::INVALID:
      watch_time(packet.kind);
      timing_seen_ = true;
      return;
    default:
      if (packet.kind != PacketKind::CBR && packet.kind != PacketKind::MNT) binder_.tnt_flushed();
      if (!in_header_) apply_rare(packet);
      break;
  }
  if (in_header_) on_header_packet(packet);
  end(packet, tnt || tip_may_be_deferred_);
}

void EventDecoder::watch_tips(const Packet& packet) noexcept {
  constexpr std::uint64_t kFullShortTnt = 6;
  switch (packet.kind) {
    case PacketKind::PAD:
      return;
    case PacketKind::TNT_8:
      if (state_.tip_watch == TipWatch::TIP) binder_.tips_are_not_deferred();
      state_.tip_watch = packet.payload2 < kFullShortTnt ? TipWatch::PARTIAL_TNT : TipWatch::NONE;
      return;
    case PacketKind::TIP:
      if (state_.tip_watch == TipWatch::PARTIAL_TNT) state_.tip_watch = TipWatch::TIP;
      return;
    default:
      state_.tip_watch = TipWatch::NONE;
      return;
  }
}

void EventDecoder::watch_tip_order(const Packet& packet) noexcept {
  switch (packet.kind) {
    case PacketKind::PAD:
    case PacketKind::CYC:
    case PacketKind::TIP:  // see on_tip()
      return;
    case PacketKind::TNT_8:
    case PacketKind::TNT_64:
      return state_.tip_order.tnt(!is_partial_tnt(packets_.stream().data() + packet.offset));
    default:
      return state_.tip_order.other();
  }
}

// Later rows are younger than this packet. Exceptions: the packet does not flush the preceding TNT bits;
// earlier bits or targets are still unused; or the packet only begins an event, because the walk to an event
// waits for all its packets (FUP + TIP, PTW + FUP, PSB+).
void EventDecoder::note_since(const Packet& packet, bool tnt) {
  state_.since = std::max(state_.since, walker_.span().since);
  if (packet.kind == PacketKind::CBR || packet.kind == PacketKind::MNT) return;
  constexpr std::uint8_t kBegun = AT_FUP | AT_FUP_BOUND | AT_TIP | AT_EXSTOP | AT_CFE;
  state_.tnt_before.reset();
  if (binder_.waits_for_target() || in_header_ || pebs_waits_ || pending_.any(kBegun)) return;
  if (tnt) {
    state_.tnt_before = packet.offset;
  } else {
    state_.since = std::max(state_.since, packet.offset);
  }
}

// Applies a packet that is not part of a PSB+.
void EventDecoder::apply_alone(const Packet& packet) {
  switch (packet.kind) {
    case PacketKind::TNT_8:
    case PacketKind::TNT_64:
      return on_tnt(packet);
    case PacketKind::TIP:
      return on_tip(packet);
    default:
      return apply_rare(packet);
  }
}

// Notes timing packets that give a time.
void EventDecoder::watch_time(PacketKind kind) noexcept {
  if (!ticks_.on) return;
  switch (kind) {
    case PacketKind::TSC:
      state_.time_moved = true;
      break;
    case PacketKind::MTC:
      state_.time_moved = state_.time_moved || ticks_.by_mtc;
      if (!ticks_.by_mtc) break;
      state_.mtcs = std::min(state_.mtcs + 1, EventState::kMtcsThatCount);
      state_.cycles_give_time = state_.cycles_give_time || state_.mtcs == EventState::kMtcsThatCount;
      break;
    case PacketKind::CYC:
      state_.time_moved = state_.time_moved || state_.cycles_give_time;
      break;
    case PacketKind::CBR:
      state_.cycles_give_time = state_.cycles_give_time || ticks_.by_cbr;
      break;
    case PacketKind::OVF:
      if (ticks_.over_overflow) break;
      state_.cycles_give_time = false;
      state_.mtcs = 0;
      break;
    default:
      break;
  }
}

void EventDecoder::tick() {
  if (state_.time_moved && binder_.on()) emit(make(EventKind::TICK));
  state_.time_moved = false;
}

void EventDecoder::on_tnt(const Packet& packet) {
  const auto count = static_cast<unsigned>(packet.payload2);
  if (!state_.time_moved) return binder_.tnt(packet.payload, count);
  // Time advanced before the first branch.
  binder_.tnt(packet.payload & 1U, 1);
  tick();
  if (count > 1) binder_.more_tnt(packet.payload >> 1U, count - 1);
}

// Emits the events that wait for this packet, oldest first.
void EventDecoder::emit_bound(std::uint8_t bindings, const Packet* ip_packet) {
  while (std::optional<Event> event = pending_.take(bindings)) {
    // RSM and SIPI have no IP in the code that they leave.
    const bool has_ip = event->kind != EventKind::RSM && event->kind != EventKind::SIPI;
    if (has_ip && ip_packet != nullptr && ip_is_known(*ip_packet)) {
      event->ip = ip_packet->ip;
      event->flags |= EV_IP_KNOWN;
    }
    emit(*event);
  }
}

void EventDecoder::on_tip(const Packet& packet) {
  std::optional<Event> async = pending_.take(AT_TIP, EventKind::ASYNC_BRANCH);
  bool near = false;
  if (lacks_last_ip(packet)) return pass_by(packet);
  if (!ip_is_known(packet)) {
    pending_.clear();
    state_.tip_order.other();
    return binder_.contradiction(Status::NO_IP);
  }
  if (async) {
    async->ip = packet.ip;
    async->flags |= EV_IP_KNOWN;
    emit(*async);
  } else {
    const bool waited = binder_.waits_for_target();
    if (waited) state_.tip_order.deferred();
    // A TIP is deferred only if TNT bits precede it.
    tip_may_be_deferred_ = (waited || state_.tnt_before) && !state_.tip_order.in_order();
    near = binder_.tip(packet.ip, tip_may_be_deferred_);
  }
  state_.tip_order.tip(near);
  tick();
  emit_bound(AT_TIP, &packet);
}

// Passes by a packet of which the IP cannot be known. Control flow is not known before the first full IP.
void EventDecoder::pass_by(const Packet& packet) {
  state_.tip_order.other();
  if (packet.kind != PacketKind::FUP) {
    binder_.lose_start(GapCause::START, Status::OK);
    return emit_bound(AT_TIP, nullptr);
  }
  emit_bound(kAnyIp, nullptr);
  emit_pebs(nullptr);
}

void EventDecoder::on_tip_pge(const Packet& packet) {
  Event event = make(EventKind::ENABLED);
  if (lacks_last_ip(packet)) return pass_by(packet);
  if (!ip_is_known(packet)) {
    pending_.clear();
    return binder_.contradiction(Status::NO_IP);
  }
  event.ip = packet.ip;
  event.flags |= EV_IP_KNOWN;
  context_.time_moved(packet.offset, false);
  emit(event);
  emit_bound(AT_TIP, &packet);
}

// Mode and paging changes of a TIP.PGD take effect while packets are disabled: their IP is meaningless.
void EventDecoder::on_tip_pgd(const Packet& packet) {
  std::optional<Event> async = pending_.take(AT_TIP, EventKind::ASYNC_BRANCH);
  Event event = async ? *async : make(EventKind::DISABLED);
  if (async) event.kind = EventKind::ASYNC_DISABLED;
  if (ip_is_known(packet)) {
    event.ip = packet.ip;
    event.flags |= EV_IP_KNOWN;
  }
  emit(event);
  emit_bound(AT_TIP, nullptr);
}

void EventDecoder::on_fup(const Packet& packet) {
  // A FUP that an IP bit announced belongs to those events only.
  if (lacks_last_ip(packet)) return pass_by(packet);
  const bool bound = pebs_waits_ || pending_.any(AT_FUP_BOUND);
  if (!ip_is_known(packet) && (bound || !pending_.any(AT_FUP))) {
    emit_bound(kAnyIp, nullptr);
    emit_pebs(nullptr);
    return binder_.contradiction(Status::NO_IP);
  }
  emit_pebs(&packet);
  emit_bound(AT_FUP | AT_FUP_BOUND, &packet);
  if (bound) return;
  Event event = make(EventKind::ASYNC_BRANCH);
  event.payload = packet.ip;
  wait(AT_TIP, event);
}

}  // namespace ptkit::flow
