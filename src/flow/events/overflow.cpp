// OVF: packets were lost. Tracing continues at the FUP that follows if packets are enabled, otherwise at
// TIP.PGE. Some processors differ (errata SKD010, APL11, APL12).
#include "flow/events/event_decoder.h"

namespace ptkit::flow {

using base::Status;

namespace {

using packet::AfterOverflow;
using packet::PacketKind;

enum class NextFup : std::uint8_t { FUP, NO_FUP, CONTRADICTION };

// Finds the packet that resolves the overflow, over timing packets. The position of `packets` is then after
// the FUP.
NextFup find_fup(packet::PacketDecoder& packets) noexcept {
  for (packet::Packet packet; packets.next(packet) == Status::OK;) {
    if (packet.kind == PacketKind::FUP) return NextFup::FUP;
    const AfterOverflow shows = packet::after_overflow(packet.kind);
    if (shows == AfterOverflow::PASSES) continue;
    return shows == AfterOverflow::ENABLED ? NextFup::CONTRADICTION : NextFup::NO_FUP;
  }
  return NextFup::NO_FUP;
}

// Whether packets may be disabled at `packet`, and no FUP belongs to it.
bool may_precede_fup(const packet::Packet& packet) noexcept {
  switch (packet::after_overflow(packet.kind)) {
    case AfterOverflow::PASSES:
    case AfterOverflow::NO_IP:
      return true;
    case AfterOverflow::IP_BIT:
      return (packet.flags & packet::Packet::IP_BIT) == 0;
    case AfterOverflow::ENABLED:
    case AfterOverflow::OTHER:
      break;
  }
  return false;
}

// The FUP of the PSB+ at the position of `packets`.
bool header_fup(packet::PacketDecoder& packets, packet::Packet& fup) noexcept {
  while (packets.next(fup) == Status::OK) {
    if (fup.kind == PacketKind::FUP) return true;
    if (!packet::continues_psb(fup.kind)) return false;
  }
  return false;
}

}  // namespace

// Emits pending events without an IP, because the packets with their IPs were lost.
void EventDecoder::emit_all_unbound() {
  emit_pebs(nullptr);
  for (;;) {
    if (std::optional<Event> data = pending_.take(AT_CFE)) {
      emit_event_data(*data);
      continue;
    }
    std::optional<Event> event = pending_.take(0xff);
    if (!event) return;
    // An asynchronous branch without its target is no branch.
    if (event->kind == EventKind::ASYNC_BRANCH || event->kind == EventKind::OVERFLOW) continue;
    if (event->kind == EventKind::IFLAG && (event->flags & EV_STATUS) != 0) continue;
    emit(*event);
  }
}

// Continues after a packet that the lookahead found.
void EventDecoder::resume_after(const packet::DecoderState& state, const Packet& packet, bool ip_known,
                                std::uint64_t ip) {
  packets_.set_state(state);
  state_.since = packet.offset;
  walker_.begin_packet(StreamSpan{walker_.span().offset, packet.offset});
  Event event = make(EventKind::OVERFLOW);
  if (ip_known) {
    event.ip = ip;
    event.flags |= EV_IP_KNOWN;
  }
  emit(event);
}

// Continues at a packet that proves that packets are enabled (or were so far), if it has an IP.
bool EventDecoder::resume_skd010(const packet::DecoderState& before, packet::PacketDecoder& lookahead,
                                 const Packet& packet) {
  if (packet.kind == PacketKind::TIP_PGD) {
    resume_after(lookahead.state(), packet, false, 0);
    return true;
  }
  Packet ip_packet = packet;
  if (packet.kind == PacketKind::PSB && !header_fup(lookahead, ip_packet)) return false;
  if ((ip_packet.flags & Packet::IP_KNOWN) == 0) return false;
  // A FUP or PSB still has to be applied.
  resume_after(packet.kind == PacketKind::TIP ? lookahead.state() : before, packet, true, ip_packet.ip);
  return true;
}

// SKD010: the FUP may be missing. Packets that are only sent while packets are enabled replace it. Returns
// true if one was found.
bool EventDecoder::recover_skd010() {
  packet::PacketDecoder lookahead = packets_;
  Packet packet;
  std::optional<Event> tx;
  for (packet::DecoderState before = lookahead.state(); lookahead.next(packet) == Status::OK;
       before = lookahead.state()) {
    switch (packet.kind) {
      case PacketKind::TIP_PGD:
      case PacketKind::TIP:
      case PacketKind::PSB:
        return resume_skd010(before, lookahead, packet);
      case PacketKind::FUP:
        if (!resume_skd010(before, lookahead, packet)) return false;
        // The FUP may belong to a MODE.TSX.
        if (tx) wait(AT_FUP_BOUND, *tx);
        return true;
      case PacketKind::MODE_TSX:
        if (tx) return false;  // a second MODE.TSX: packets are disabled
        tx = make_tsx(packet);
        break;
      default:
        if (!may_precede_fup(packet)) return false;
        break;
    }
  }
  return false;
}

// APL11: a TIP.PGD right after the OVF means that packets are disabled.
bool EventDecoder::recover_apl11() {
  packet::PacketDecoder lookahead = packets_;
  for (Packet packet; lookahead.next(packet) == Status::OK;) {
    if (packet.kind == PacketKind::TIP_PGD) {
      resume_after(lookahead.state(), packet, false, 0);
      return true;
    }
    if (packet::after_overflow(packet.kind) != AfterOverflow::PASSES) return false;
  }
  return false;
}

// APL12: the FUP after the OVF is wrong if later packets show that packets are disabled.
bool EventDecoder::apl12_applies(const packet::DecoderState& after_fup) const {
  packet::PacketDecoder lookahead = packets_;
  lookahead.set_state(after_fup);
  for (Packet packet; lookahead.next(packet) == Status::OK;) {
    switch (packet.kind) {
      case PacketKind::TNT_8:
      case PacketKind::TNT_64:
      case PacketKind::TIP:
      case PacketKind::TIP_PGD:
      case PacketKind::PSBEND:
      case PacketKind::OVF:
        return false;
      case PacketKind::TRACE_STOP:
      case PacketKind::TIP_PGE:
        return true;
      case PacketKind::PSB: {
        Packet fup;
        const bool has_fup = header_fup(lookahead, fup);
        return !has_fup && lookahead.position() < lookahead.stream().size();
      }
      default:
        break;
    }
  }
  return false;
}

void EventDecoder::on_ovf(const Packet& packet) {
  watch_time(packet.kind);
  binder_.pause();
  emit_all_unbound();
  state_.mode.reset();
  header_.clear();
  state_.first_psb = false;
  packet::PacketDecoder lookahead = packets_;
  const NextFup found = find_fup(lookahead);
  if (found == NextFup::FUP) {
    if (errata_.apl12 && apl12_applies(lookahead.state())) {
      // Continue after the FUP; the packets between are timing packets.
      state_.since = packet.offset;
      packets_.set_state(lookahead.state());
      return emit(make(EventKind::OVERFLOW));
    }
    return wait(AT_FUP_BOUND, make(EventKind::OVERFLOW));
  }
  if (errata_.skd010 && recover_skd010()) return;
  if (errata_.apl11 && found == NextFup::CONTRADICTION && recover_apl11()) return;
  if (found == NextFup::CONTRADICTION) return binder_.contradiction(Status::UNEXPECTED_PACKET);
  emit(make(EventKind::OVERFLOW));
}

}  // namespace ptkit::flow
