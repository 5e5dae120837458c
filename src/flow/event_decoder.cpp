#include "flow/event_decoder.h"

#include <algorithm>
#include <utility>

#include "flow/plain_packets.h"

namespace ptkit::flow {

using base::Status;

namespace {

bool ip_is_known(const packet::Packet& packet) noexcept {
  return (packet.flags & packet::Packet::IP_KNOWN) != 0;
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
  placer_.contradiction(Status::UNEXPECTED_PACKET);
}

void EventDecoder::restart() {
  pending_.clear();
  pebs_.clear();
  pebs_waits_ = false;
  header_.clear();
  in_header_ = false;
  tip_watch_ = TipWatch::NONE;
  tip_order_.other();
  tnt_before_.reset();
  mode_known_ = false;
  first_psb_ = true;
}

void EventDecoder::begin(const Packet& packet, bool tnt) {
  // A full TNT packet is written with its last branch. Direct branches after the last branch of another one
  // may be older than that packet, and than TIPs that were deferred and written with it; conditional branches
  // of the next TNT packet are not.
  std::uint64_t bits_since = since_;
  if (tnt && tnt_before_) {
    bits_since = std::max(since_, *tnt_before_);
    if (!may_be_late(packets_.stream().data() + *tnt_before_)) since_ = bits_since;
  }
  context_.reach(packet.offset);
  watch_tips(packet);
  watch_tip_order(packet);
  walker_.begin_packet(Place{since_, packet.offset}, bits_since);
  placer_.set_packet(packet.kind);
}

void EventDecoder::end(const Packet& packet, bool tnt) {
  // Bits and targets that come after a timing packet are older than it: code is seen as it was before.
  if (std::exchange(timing_seen_, false)) context_.time_moved(packet.offset, placer_.on());
  note_since(packet, tnt);
}

void EventDecoder::apply_rest(const Packet& tnt, std::uint64_t bits, unsigned count, std::uint64_t walked) {
  begin(tnt, true);
  walker_.continue_packet(walked, static_cast<unsigned>(tnt.payload2) - count);
  placer_.tnt(bits, count);
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
      if (packet.kind != PacketKind::CBR && packet.kind != PacketKind::MNT) placer_.tnt_flushed();
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
      if (tip_watch_ == TipWatch::TIP) placer_.tips_are_not_deferred();
      tip_watch_ = packet.payload2 < kFullShortTnt ? TipWatch::PARTIAL_TNT : TipWatch::NONE;
      return;
    case PacketKind::TIP:
      if (tip_watch_ == TipWatch::PARTIAL_TNT) tip_watch_ = TipWatch::TIP;
      return;
    default:
      tip_watch_ = TipWatch::NONE;
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
      return tip_order_.tnt(!is_partial_tnt(packets_.stream().data() + packet.offset));
    default:
      return tip_order_.other();
  }
}

// What follows is younger than this packet, unless the packet does not force out the TNT bits before it, or
// bits or targets of before are still to be used, or it only begins something: what precedes an event is
// walked when the event is whole (FUP + TIP, PTW + FUP, PSB+).
void EventDecoder::note_since(const Packet& packet, bool tnt) {
  since_ = std::max(since_, walker_.place().since);
  if (packet.kind == PacketKind::CBR || packet.kind == PacketKind::MNT) return;
  constexpr std::uint8_t kBegun = AT_FUP | AT_FUP_BOUND | AT_TIP | AT_EXSTOP | AT_CFE;
  tnt_before_.reset();
  if (placer_.waits_for_target() || in_header_ || pebs_waits_ || pending_.any(kBegun)) return;
  if (tnt) {
    tnt_before_ = packet.offset;
  } else {
    since_ = std::max(since_, packet.offset);
  }
}

void EventDecoder::apply_rare(const Packet& packet) {
  switch (packet.kind) {
    case PacketKind::TIP_PGE:
      return on_tip_pge(packet);
    case PacketKind::TIP_PGD:
      return on_tip_pgd(packet);
    case PacketKind::FUP:
      return on_fup(packet);
    case PacketKind::PSB:
      return on_psb(packet);
    case PacketKind::PSBEND:
      return;  // the end of a header that an OVF ended already
    case PacketKind::OVF:
      return on_ovf(packet);
    case PacketKind::MODE_EXEC:
      return on_mode_exec(packet);
    case PacketKind::MODE_TSX:
      return on_mode_tsx(packet);
    case PacketKind::PIP:
      return on_pip(packet);
    case PacketKind::VMCS:
      return on_vmcs(packet);
    case PacketKind::PTW:
      return on_ptw(packet);
    case PacketKind::EXSTOP:
      return on_exstop(packet);
    case PacketKind::PWRX:
      return on_pwrx(packet);
    case PacketKind::TRIG:
      return on_trig(packet);
    case PacketKind::CFE:
      return on_cfe(packet);
    case PacketKind::EVD:
      return on_evd(packet);
    default:
      return apply_simple(packet);
  }
}

// Would time be said to have moved with this packet?
void EventDecoder::watch_time(PacketKind kind) noexcept {
  switch (kind) {
    case PacketKind::TSC:
      time_moved_ = true;
      break;
    case PacketKind::MTC:
      time_moved_ = time_moved_ || ticks_.by_mtc;
      // Two of them tell how many cycles a period has.
      if (ticks_.by_mtc && ++mtcs_ >= 2) cycles_tell_time_ = true;
      break;
    case PacketKind::CYC:
      time_moved_ = time_moved_ || cycles_tell_time_;
      break;
    case PacketKind::CBR:
      cycles_tell_time_ = cycles_tell_time_ || ticks_.by_cbr;
      break;
    case PacketKind::OVF:
      if (ticks_.over_overflow) break;
      cycles_tell_time_ = false;
      mtcs_ = 0;
      break;
    default:
      break;
  }
}

void EventDecoder::tick() {
  if (ticks_.on && time_moved_ && placer_.on()) give(make(EventKind::TICK));
  time_moved_ = false;
}

void EventDecoder::on_tnt(const Packet& packet) {
  const auto count = static_cast<unsigned>(packet.payload2);
  if (!ticks_.on || !time_moved_) return placer_.tnt(packet.payload, count);
  // Time moved before the first of the branches.
  placer_.tnt(packet.payload & 1U, 1);
  tick();
  if (count > 1) placer_.more_tnt(packet.payload >> 1U, count - 1);
}

// Gives the events that wait for this packet, oldest first.
void EventDecoder::give_bound(std::uint8_t bindings, const Packet* ip_packet) {
  while (std::optional<Event> event = pending_.take(bindings)) {
    // RSM and SIPI have no place in the code they leave.
    const bool placed = event->kind != EventKind::RSM && event->kind != EventKind::SIPI;
    if (placed && ip_packet != nullptr && ip_is_known(*ip_packet)) {
      event->ip = ip_packet->ip;
      event->flags |= EV_IP_KNOWN;
    }
    give(*event);
  }
}

void EventDecoder::on_tip(const Packet& packet) {
  std::optional<Event> async = pending_.take(AT_TIP, EventKind::ASYNC_BRANCH);
  bool near = false;
  if (!ip_is_known(packet)) {
    pending_.clear();
    tip_order_.other();
    return placer_.contradiction(Status::NO_IP);
  }
  if (async) {
    async->ip = packet.ip;
    async->flags |= EV_IP_KNOWN;
    give(*async);
  } else {
    const bool waited = placer_.waits_for_target();
    if (waited) tip_order_.deferred();
    // Without bits of a TNT packet before it, a TIP is not deferred.
    tip_may_be_deferred_ = (waited || tnt_before_) && !tip_order_.in_order();
    near = placer_.tip(packet.ip, tip_may_be_deferred_);
  }
  tip_order_.tip(near);
  tick();
  give_bound(AT_TIP, &packet);
}

void EventDecoder::on_tip_pge(const Packet& packet) {
  Event event = make(EventKind::ENABLED);
  if (!ip_is_known(packet)) {
    pending_.clear();
    return placer_.contradiction(Status::NO_IP);
  }
  event.ip = packet.ip;
  event.flags |= EV_IP_KNOWN;
  context_.time_moved(packet.offset, false);
  give(event);
  give_bound(AT_TIP, &packet);
}

// Mode and paging changes that come with a TIP.PGD take effect where packets are off already: their IP says
// nothing.
void EventDecoder::on_tip_pgd(const Packet& packet) {
  std::optional<Event> async = pending_.take(AT_TIP, EventKind::ASYNC_BRANCH);
  Event event = async ? *async : make(EventKind::DISABLED);
  if (async) event.kind = EventKind::ASYNC_DISABLED;
  if (ip_is_known(packet)) {
    event.ip = packet.ip;
    event.flags |= EV_IP_KNOWN;
  }
  give(event);
  give_bound(AT_TIP, nullptr);
}

void EventDecoder::on_fup(const Packet& packet) {
  // A FUP that an IP bit announced is there for those events only.
  const bool bound = pebs_waits_ || pending_.any(AT_FUP_BOUND);
  if (!ip_is_known(packet) && (bound || !pending_.any(AT_FUP))) {
    give_bound(kAnyIp, nullptr);
    give_pebs(nullptr);
    return placer_.contradiction(Status::NO_IP);
  }
  give_pebs(&packet);
  give_bound(AT_FUP | AT_FUP_BOUND, &packet);
  if (bound) return;
  Event event = make(EventKind::ASYNC_BRANCH);
  event.payload = packet.ip;
  wait(AT_TIP, event);
}

}  // namespace ptkit::flow
