// PSB+: the state of the processor at a synchronization point.
#include "flow/events/event_decoder.h"

namespace ptkit::flow {

using base::Status;

void EventDecoder::on_psb(const Packet& packet) {
  if (!pending_.empty() || !pebs_.empty()) {
    // No event spans a PSB: its FUP or TIP was lost.
    binder_.contradiction(Status::UNEXPECTED_PACKET);
    emit_all_unbound();
    if (binder_.needs_psb()) return;
  }
  in_header_ = true;
  state_.psb = packet.offset;
  header_fup_ = false;
  header_.clear();
}

// Keeps the state of a PSB+ until its end.
void EventDecoder::keep_header_event(const Packet& packet) {
  Event event;
  event.payload = packet.payload;
  switch (packet.kind) {
    case PacketKind::MODE_EXEC:
      event.kind = EventKind::EXEC_MODE;
      event.payload2 = packet.payload2;
      break;
    case PacketKind::MODE_TSX:
      event = make_tsx(packet);
      break;
    case PacketKind::PIP:
      pip_at_ = packet.offset;
      event.kind = EventKind::ASYNC_PAGING;
      if ((packet.flags & Packet::NR) != 0) event.flags |= EV_NON_ROOT;
      break;
    case PacketKind::VMCS:
      event.kind = EventKind::ASYNC_VMCS;
      break;
    case PacketKind::CBR:
      watch_time(packet.kind);
      event.kind = EventKind::CBR;
      break;
    default:
      event.kind = EventKind::MNT;
      break;
  }
  header_.push_back(event);
}

void EventDecoder::on_header_packet(const Packet& packet) {
  switch (packet.kind) {
    case PacketKind::PSB:
      if (packet.offset == state_.psb) return;
      // The preceding PSB+ is incomplete.
      in_header_ = false;
      binder_.contradiction(Status::UNEXPECTED_PACKET);
      if (!binder_.needs_psb()) on_psb(packet);
      return;
    case PacketKind::FUP:
      header_fup_ = (packet.flags & Packet::IP_KNOWN) != 0;
      header_ip_ = packet.ip;
      return;
    case PacketKind::MODE_EXEC:
      if (!contradicts_mode(packet)) return keep_header_event(packet);
      // The mode changed without a MODE.Exec packet: the IP of the change is unknown.
      in_header_ = false;
      binder_.contradiction(packet.payload == 0 ? Status::BAD_PACKET : Status::UNEXPECTED_PACKET);
      return binder_.require_psb();
    case PacketKind::MODE_TSX:
    case PacketKind::PIP:
    case PacketKind::VMCS:
    case PacketKind::CBR:
    case PacketKind::MNT:
      return keep_header_event(packet);
    case PacketKind::PSBEND:
      return end_header(false);
    case PacketKind::OVF:
      end_header(true);
      return on_ovf(packet);
    default:
      // No other packet is allowed in a PSB+.
      in_header_ = false;
      header_.clear();
      binder_.contradiction(Status::UNEXPECTED_PACKET);
      return binder_.require_psb();
  }
}

// Erratum BDM70: the PSB+ before a TIP.PGE may report enabled packets. They are disabled if that TIP.PGE is
// the next packet that depends on it.
bool EventDecoder::pge_follows() const {
  packet::PacketDecoder lookahead = packets_;
  for (Packet packet; lookahead.next(packet) == Status::OK;) {
    switch (packet.kind) {
      case PacketKind::TIP_PGE:
        return true;
      case PacketKind::PAD:
      case PacketKind::TSC:
      case PacketKind::CBR:
      case PacketKind::PSBEND:
      case PacketKind::PIP:
      case PacketKind::MODE_EXEC:
      case PacketKind::MODE_TSX:
      case PacketKind::VMCS:
      case PacketKind::TMA:
      case PacketKind::MTC:
      case PacketKind::CYC:
      case PacketKind::MNT:
        break;
      default:
        return false;
    }
  }
  return false;
}

bool EventDecoder::contradicts_mode(const Packet& packet) const {
  if (packet.payload == 0) return true;
  const bool known = state_.mode && !state_.first_psb && !binder_.lost();
  return known && (*state_.mode & 3U) != (packet.payload2 & 3U);
}

void EventDecoder::emit_header_mode(Event event) {
  const bool iflag = (event.payload2 & EventState::kIflag) != 0;
  state_.mode = event.payload2;
  if (iflag) prove_event_trace();
  event.payload2 = 0;
  emit(event);
  event.kind = EventKind::IFLAG;
  event.payload = iflag ? 1 : 0;
  emit(event);
}

void EventDecoder::end_header(bool by_overflow) {
  in_header_ = false;
  const bool enabled = header_fup_ && !pge_follows();
  const bool first = state_.first_psb;
  if (first || binder_.lost()) {
    // Earlier state is void, so the mode holds from the first instruction on.
    for (const Event& event : header_) {
      if (event.kind == EventKind::EXEC_MODE) context_.set_mode(static_cast<insn::ExecMode>(event.payload));
    }
    state_.mode.reset();
  }
  state_.first_psb = false;
  // A header that an overflow ended may have lost its FUP.
  if (!by_overflow || enabled) binder_.status(enabled, header_ip_, first);
  for (Event& event : header_) {
    if (binder_.needs_psb()) break;
    if (event.kind != EventKind::MNT) event.flags |= EV_STATUS;
    if (enabled && event.kind != EventKind::MNT && event.kind != EventKind::CBR) {
      event.ip = header_ip_;
      event.flags |= EV_IP_KNOWN;
    }
    if (event.kind == EventKind::EXEC_MODE) {
      emit_header_mode(event);
    } else {
      emit(event);
    }
  }
  header_.clear();
}

}  // namespace ptkit::flow
