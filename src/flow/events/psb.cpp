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
      return cut_header(packet);
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
      return end_header(header_fup_ && !pge_follows());
    case PacketKind::OVF:
      // The overflow may have lost the FUP.
      end_header(header_fup_ && !pge_follows() ? std::optional(true) : std::nullopt);
      return on_ovf(packet);
    default:
      return cut_header(packet);
  }
}

// Whether packets are enabled after a PSB+ without PSBEND: they are if it has a FUP. Before a TIP.PGE they
// are disabled (erratum BDM70). Without a FUP, a packet that is generated only while they are enabled leaves
// it open, and so does the next PSB+.
std::optional<bool> EventDecoder::status_before(PacketKind kind) const noexcept {
  if (kind == PacketKind::TIP_PGE) return false;
  if (header_fup_) return true;
  const bool open = kind == PacketKind::PSB || kind == PacketKind::TNT_8 || kind == PacketKind::TNT_64 ||
                    kind == PacketKind::TIP || kind == PacketKind::TIP_PGD || kind == PacketKind::PTW;
  return open ? std::nullopt : std::optional(false);
}

// The packet cannot be in the PSB+, so the PSBEND is missing. What the PSB+ has counts, and the packet is
// used.
void EventDecoder::cut_header(const Packet& packet) {
  const bool first = state_.first_psb;
  const std::optional<bool> status = status_before(packet.kind);
  const bool open = first || !binder_.on() || binder_.lost();
  const bool next_says = packet.kind == PacketKind::PSB && !status && open;
  binder_.header_cut(next_says ? binder_.on() : status, first);
  if (binder_.needs_psb()) {
    in_header_ = false;
    return header_.clear();
  }
  end_header(status);
  if (next_says) state_.first_psb = first;
  if (binder_.needs_psb()) return;
  // Rows of the packet are not older than those of the PSB+.
  walker_.begin_packet(StreamSpan{walker_.span().since, packet.offset});
  apply_alone(packet);
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

// `status`: whether packets are enabled, if the PSB+ says so.
void EventDecoder::end_header(std::optional<bool> status) {
  in_header_ = false;
  const bool enabled = status.value_or(false);
  const bool first = state_.first_psb;
  if (first || binder_.lost()) {
    // Earlier state is void, so the mode holds from the first instruction on.
    for (const Event& event : header_) {
      if (event.kind == EventKind::EXEC_MODE)
        context_.set_mode(static_cast<code::insn::ExecMode>(event.payload));
    }
    state_.mode.reset();
  }
  state_.first_psb = false;
  if (status) binder_.status(enabled, header_ip_, first);
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
