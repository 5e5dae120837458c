// Events that one packet tells of, with the FUP or TIP that may give their place.
#include "flow/event_decoder.h"

namespace ptkit::flow {

using base::Status;

namespace {

bool announces_fup(const packet::Packet& packet) noexcept {
  return (packet.flags & packet::Packet::IP_BIT) != 0;
}

}  // namespace

void EventDecoder::apply_simple(const Packet& packet) {
  Event event;
  event.payload = packet.payload;
  event.payload2 = packet.payload2;
  switch (packet.kind) {
    case PacketKind::CBR:
      watch_time(packet.kind);
      event.kind = EventKind::CBR;
      return give(event);
    case PacketKind::MNT:
      event.kind = EventKind::MNT;
      return give(event);
    case PacketKind::TRACE_STOP:
      return give(make(EventKind::STOP));
    case PacketKind::MWAIT:
      // It sleeps at the EXSTOP that follows.
      event.kind = EventKind::MWAIT;
      return wait(AT_EXSTOP, event);
    case PacketKind::PWRE:
      event.kind = EventKind::PWRE;
      if ((packet.flags & Packet::HW) != 0) event.flags |= EV_HW;
      return wait(AT_PWRX, event);
    case PacketKind::BBP:
      give_pebs(nullptr);
      event.kind = EventKind::PEBS_BEGIN;
      event.payload2 = packet.payload2 != 0 ? 4 : 8;
      pebs_.push_back(event);
      return;
    case PacketKind::BIP:
      event.kind = EventKind::PEBS_ITEM;
      pebs_.push_back(event);
      return;
    case PacketKind::BEP:
      pebs_.push_back(make(EventKind::PEBS_END));
      pebs_waits_ = announces_fup(packet);
      if (!pebs_waits_) give_pebs(nullptr);
      return;
    default:
      return;
  }
}

// All rows of a PEBS block stand together, where its FUP says.
void EventDecoder::give_pebs(const Packet* ip_packet) {
  const bool placed = pebs_waits_ && ip_packet != nullptr && (ip_packet->flags & Packet::IP_KNOWN) != 0;
  if (ip_packet != nullptr && !pebs_waits_) return;
  pebs_waits_ = false;
  std::vector<Event> rows;
  rows.swap(pebs_);
  for (Event& event : rows) {
    if (placed) {
      event.ip = ip_packet->ip;
      event.flags |= EV_IP_KNOWN;
    }
    give(event);
  }
  rows.clear();
  pebs_.swap(rows);
}

// MODE.Exec says two things: the mode, and whether interrupts are enabled. Both are bound to the TIP or FUP
// that follows.
void EventDecoder::on_mode_exec(const Packet& packet) {
  if (packet.payload == 0) return placer_.contradiction(Status::BAD_PACKET);
  const bool iflag = (packet.payload2 & 4U) != 0;
  if (iflag) prove_event_trace();
  const bool mode_changed = !mode_known_ || (mode_bits_ & 3U) != (packet.payload2 & 3U);
  const bool iflag_changed = !mode_known_ || iflag != iflag_;
  if (mode_changed) {
    Event event = make(EventKind::EXEC_MODE);
    event.payload = packet.payload;
    wait(AT_TIP | AT_FUP_BOUND, event);
  }
  // A packet that changes nothing is bound all the same, lest its FUP be taken for an asynchronous branch.
  if (iflag_changed || !mode_changed) {
    Event event = make(EventKind::IFLAG);
    event.payload = iflag ? 1 : 0;
    if (!iflag_changed) event.flags |= EV_STATUS;
    wait(AT_TIP | AT_FUP_BOUND, event);
  }
  mode_known_ = true;
  mode_bits_ = packet.payload2;
  iflag_ = iflag;
}

void EventDecoder::on_mode_tsx(const Packet& packet) {
  const Event event = make_tsx(packet);
  if (!placer_.on()) return give(event);
  // The FUP of an abort also begins the asynchronous branch to the fallback handler.
  wait(event.kind == EventKind::TSX_ABORT ? AT_FUP : AT_FUP_BOUND, event);
}

// PIP and VMCS stand alone, or between the FUP and the TIP of an asynchronous branch.
void EventDecoder::on_pip(const Packet& packet) {
  pip_at_.reset();
  const bool async = pending_.find(AT_TIP, EventKind::ASYNC_BRANCH) != nullptr;
  Event event = make(async ? EventKind::ASYNC_PAGING : EventKind::PAGING);
  event.payload = packet.payload;
  if ((packet.flags & Packet::NR) != 0) event.flags |= EV_NON_ROOT;
  if (async) return wait(AT_TIP, event);
  give(event);
}

void EventDecoder::on_vmcs(const Packet& packet) {
  if (Event* paging = pending_.find(AT_TIP, EventKind::ASYNC_PAGING)) {
    // The VMCS is the wider context: it comes first.
    const Event moved = *paging;
    *paging = make(EventKind::ASYNC_VMCS);
    paging->payload = packet.payload;
    return wait(AT_TIP, moved);
  }
  const bool async = pending_.find(AT_TIP, EventKind::ASYNC_BRANCH) != nullptr;
  Event event = make(async ? EventKind::ASYNC_VMCS : EventKind::VMCS);
  event.payload = packet.payload;
  if (async) return wait(AT_TIP, event);
  give(event);
}

void EventDecoder::on_ptw(const Packet& packet) {
  Event event = make(EventKind::PTWRITE);
  event.payload = packet.payload;
  event.payload2 = packet.payload2 == 0 ? 4 : 8;
  if (announces_fup(packet)) return wait(AT_FUP_BOUND, event);
  give(event);
}

void EventDecoder::on_exstop(const Packet& packet) {
  std::optional<Event> mwait = pending_.take(AT_EXSTOP);
  const Event event = make(EventKind::EXSTOP);
  if (announces_fup(packet)) {
    // Both are where the FUP says.
    if (mwait) wait(AT_FUP_BOUND, *mwait);
    return wait(AT_FUP_BOUND, event);
  }
  if (mwait) give(*mwait);
  give(event);
}

void EventDecoder::on_pwrx(const Packet& packet) {
  give_bound(AT_PWRX, nullptr);
  Event event = make(EventKind::PWRX);
  event.payload = packet.payload;
  event.payload2 = packet.payload2;
  give(event);
}

void EventDecoder::on_trig(const Packet& packet) {
  Event event = make(EventKind::TRIG);
  event.payload = packet.payload;
  event.payload2 = packet.payload2;
  if ((packet.flags & Packet::MULT) != 0) event.flags |= EV_MULT;
  if ((packet.flags & Packet::ICNT) != 0) event.flags |= EV_ICNT_KNOWN;
  if (announces_fup(packet)) {
    // A FUP serves an exact place only.
    if ((packet.flags & Packet::ICNT) == 0 || packet.payload2 != 0)
      return placer_.contradiction(Status::BAD_PACKET);
    return wait(AT_FUP_BOUND, event);
  }
  give(event);
}

}  // namespace ptkit::flow
