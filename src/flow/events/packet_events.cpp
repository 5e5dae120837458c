// Which events a packet makes, with the FUP or TIP that may give their IP.
#include <utility>

#include "flow/events/event_decoder.h"

namespace ptkit::flow {

using base::Status;

namespace {

bool announces_fup(const packet::Packet& packet) noexcept {
  return (packet.flags & packet::Packet::IP_BIT) != 0;
}

}  // namespace

// The event of a packet, with the IP of the FUP that the packet announces.
void EventDecoder::report(const Packet& packet, const Event& event) {
  if (announces_fup(packet)) return wait(AT_FUP_BOUND, event);
  emit(event);
}

// Other packets report nothing.
void EventDecoder::apply_rare(const Packet& packet) {
  Event event;
  event.payload = packet.payload;
  event.payload2 = packet.payload2;
  switch (packet.kind) {
    case PacketKind::TIP_PGE:
      return on_tip_pge(packet);
    case PacketKind::TIP_PGD:
      return on_tip_pgd(packet);
    case PacketKind::FUP:
      return on_fup(packet);
    case PacketKind::PSB:
      return on_psb(packet);
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
    case PacketKind::CFE:
      return on_cfe(packet);
    case PacketKind::EVD:
      return on_evd(packet);
    case PacketKind::CBR:
      watch_time(packet.kind);
      event.kind = EventKind::CBR;
      return emit(event);
    case PacketKind::MNT:
      event.kind = EventKind::MNT;
      return emit(event);
    case PacketKind::TRACE_STOP:
      return emit(make(EventKind::STOP));
    case PacketKind::PTW:
      event.kind = EventKind::PTWRITE;
      event.payload2 = packet.payload2 == 0 ? 4 : 8;
      return report(packet, event);
    case PacketKind::EXSTOP:
      return on_exstop(packet);
    case PacketKind::MWAIT:
      // The processor sleeps at the EXSTOP that follows.
      event.kind = EventKind::MWAIT;
      return wait(AT_EXSTOP, event);
    case PacketKind::PWRE:
      event.kind = EventKind::PWRE;
      if ((packet.flags & Packet::HW) != 0) event.flags |= EV_HW;
      return wait(AT_PWRX, event);
    case PacketKind::PWRX:
      emit_bound(AT_PWRX, nullptr);
      event.kind = EventKind::PWRX;
      return emit(event);
    case PacketKind::BBP:
      emit_pebs(nullptr);
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
      if (!pebs_waits_) emit_pebs(nullptr);
      return;
    case PacketKind::TRIG:
      return on_trig(packet);
    default:  // such as the PSBEND of a header that an OVF ended already
      return;
  }
}

// All rows of a PEBS block have the IP of the FUP at its end.
void EventDecoder::emit_pebs(const Packet* ip_packet) {
  const bool has_ip = pebs_waits_ && ip_packet != nullptr && (ip_packet->flags & Packet::IP_KNOWN) != 0;
  if (ip_packet != nullptr && !pebs_waits_) return;
  pebs_waits_ = false;
  std::vector<Event> rows;
  rows.swap(pebs_);
  for (Event& event : rows) {
    if (has_ip) {
      event.ip = ip_packet->ip;
      event.flags |= EV_IP_KNOWN;
    }
    emit(event);
  }
  rows.clear();
  pebs_.swap(rows);
}

// MODE.Exec has the mode and the interrupt flag. The TIP or FUP that follows gives the IP of both.
void EventDecoder::on_mode_exec(const Packet& packet) {
  if (packet.payload == 0) return binder_.contradiction(Status::BAD_PACKET);
  const bool iflag = (packet.payload2 & EventState::kIflag) != 0;
  if (iflag) prove_event_trace();
  const std::optional<std::uint64_t> before = std::exchange(state_.mode, packet.payload2);
  const bool mode_changed = !before || (*before & 3U) != (packet.payload2 & 3U);
  const bool iflag_changed = !before || iflag != ((*before & EventState::kIflag) != 0);
  if (mode_changed) {
    Event event = make(EventKind::EXEC_MODE);
    event.payload = packet.payload;
    wait(AT_TIP | AT_FUP_BOUND, event);
  }
  // A packet without a change also waits for its FUP, which would start an asynchronous branch otherwise.
  if (iflag_changed || !mode_changed) {
    Event event = make(EventKind::IFLAG);
    event.payload = iflag ? 1 : 0;
    if (!iflag_changed) event.flags |= EV_STATUS;
    wait(AT_TIP | AT_FUP_BOUND, event);
  }
}

void EventDecoder::on_mode_tsx(const Packet& packet) {
  const Event event = make_tsx(packet);
  if (!binder_.on()) return emit(event);
  // The FUP of an abort also starts the asynchronous branch to the fallback handler.
  wait(event.kind == EventKind::TSX_ABORT ? AT_FUP : AT_FUP_BOUND, event);
}

// PIP and VMCS come alone, or between the FUP and the TIP of an asynchronous branch.
void EventDecoder::on_pip(const Packet& packet) {
  pip_at_.reset();
  const bool async = pending_.find(AT_TIP, EventKind::ASYNC_BRANCH) != nullptr;
  Event event = make(async ? EventKind::ASYNC_PAGING : EventKind::PAGING);
  event.payload = packet.payload;
  if ((packet.flags & Packet::NR) != 0) event.flags |= EV_NON_ROOT;
  if (async) return wait(AT_TIP, event);
  emit(event);
}

void EventDecoder::on_vmcs(const Packet& packet) {
  if (Event* paging = pending_.find(AT_TIP, EventKind::ASYNC_PAGING)) {
    // The VMCS contains the PIP's context, so it comes first.
    const Event moved = *paging;
    *paging = make(EventKind::ASYNC_VMCS);
    paging->payload = packet.payload;
    return wait(AT_TIP, moved);
  }
  const bool async = pending_.find(AT_TIP, EventKind::ASYNC_BRANCH) != nullptr;
  Event event = make(async ? EventKind::ASYNC_VMCS : EventKind::VMCS);
  event.payload = packet.payload;
  if (async) return wait(AT_TIP, event);
  emit(event);
}

void EventDecoder::on_exstop(const Packet& packet) {
  // An MWAIT has the IP of the same FUP.
  if (const std::optional<Event> mwait = pending_.take(AT_EXSTOP)) report(packet, *mwait);
  report(packet, make(EventKind::EXSTOP));
}

void EventDecoder::on_trig(const Packet& packet) {
  Event event = make(EventKind::TRIG);
  event.payload = packet.payload;
  event.payload2 = packet.payload2;
  if ((packet.flags & Packet::MULT) != 0) event.flags |= EV_MULT;
  if ((packet.flags & Packet::ICNT) != 0) event.flags |= EV_ICNT_KNOWN;
  // A FUP follows only if ICNT is 0.
  if (announces_fup(packet) && ((packet.flags & Packet::ICNT) == 0 || packet.payload2 != 0))
    return binder_.contradiction(Status::BAD_PACKET);
  report(packet, event);
}

}  // namespace ptkit::flow
