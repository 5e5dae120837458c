// OVF: packets were lost. Where do they go on? With the FUP that follows if packets are on again, else with
// TIP.PGE; some processors do otherwise (errata SKD010, APL11, APL12).
#include "flow/event_decoder.h"

namespace ptkit::flow {

using base::Status;

namespace {

using packet::PacketKind;

enum class Ahead : std::uint8_t { FUP, NO_FUP, CONTRADICTION };

bool is_tnt(PacketKind kind) noexcept { return kind == PacketKind::TNT_8 || kind == PacketKind::TNT_64; }

bool passes_by(PacketKind kind) noexcept {
  switch (kind) {
    case PacketKind::PAD:
    case PacketKind::MNT:
    case PacketKind::CBR:
    case PacketKind::TSC:
    case PacketKind::TMA:
    case PacketKind::MTC:
    case PacketKind::CYC:
    case PacketKind::INVALID:
      return true;
    default:
      return false;
  }
}

// What resolves the overflow: looks past timing packets. `packets` stands behind the FUP afterwards.
Ahead look_for_fup(packet::PacketDecoder& packets) noexcept {
  for (packet::Packet packet; packets.next(packet) == Status::OK;) {
    if (packet.kind == PacketKind::FUP) return Ahead::FUP;
    if (passes_by(packet.kind)) continue;
    const bool needs_packets_on = is_tnt(packet.kind) || packet.kind == PacketKind::TIP ||
                                  packet.kind == PacketKind::TIP_PGD || packet.kind == PacketKind::PSBEND;
    return needs_packets_on ? Ahead::CONTRADICTION : Ahead::NO_FUP;
  }
  return Ahead::NO_FUP;
}

// The FUP of the PSB+ that `packets` stands in.
bool header_fup(packet::PacketDecoder& packets, packet::Packet& fup) noexcept {
  while (packets.next(fup) == Status::OK) {
    if (fup.kind == PacketKind::FUP) return true;
    if (fup.kind == PacketKind::PSBEND || fup.kind == PacketKind::OVF) return false;
  }
  return false;
}

}  // namespace

// Events whose place was lost are told without one.
void EventDecoder::give_all_unplaced() {
  give_pebs(nullptr);
  for (;;) {
    if (std::optional<Event> data = pending_.take(AT_CFE)) {
      give_event_data(*data);
      continue;
    }
    std::optional<Event> event = pending_.take(0xff);
    if (!event) return;
    // An asynchronous branch without its target is no branch.
    if (event->kind == EventKind::ASYNC_BRANCH || event->kind == EventKind::OVERFLOW) continue;
    if (event->kind == EventKind::IFLAG && (event->flags & EV_STATUS) != 0) continue;
    give(*event);
  }
}

// Goes on behind a packet that was found ahead.
void EventDecoder::go_on_behind(const packet::DecoderState& state, const Packet& packet, bool ip_known,
                                std::uint64_t ip) {
  packets_.set_state(state);
  since_ = packet.offset;
  walker_.begin_packet(Place{walker_.place().offset, packet.offset});
  Event event = make(EventKind::OVERFLOW);
  if (ip_known) {
    event.ip = ip;
    event.flags |= EV_IP_KNOWN;
  }
  give(event);
}

// Goes on at a packet that tells that tracing is on (or was, until now), if it has an IP.
bool EventDecoder::resume_skd010(const packet::DecoderState& before, packet::PacketDecoder& ahead,
                                 const Packet& packet) {
  if (packet.kind == PacketKind::TIP_PGD) {
    go_on_behind(ahead.state(), packet, false, 0);
    return true;
  }
  Packet told_by = packet;
  if (packet.kind == PacketKind::PSB && !header_fup(ahead, told_by)) return false;
  if ((told_by.flags & Packet::IP_KNOWN) == 0) return false;
  // A FUP or PSB itself is still to be applied.
  go_on_behind(packet.kind == PacketKind::TIP ? ahead.state() : before, packet, true, told_by.ip);
  return true;
}

// SKD010: the FUP may be missing. Packets that need tracing to be on tell that it is. Returns true if that
// was found.
bool EventDecoder::recover_skd010() {
  packet::PacketDecoder ahead = packets_;
  Packet packet;
  std::optional<Event> tx;
  for (packet::DecoderState before = ahead.state(); ahead.next(packet) == Status::OK;
       before = ahead.state()) {
    switch (packet.kind) {
      case PacketKind::TIP_PGD:
      case PacketKind::TIP:
      case PacketKind::PSB:
        return resume_skd010(before, ahead, packet);
      case PacketKind::FUP:
        if (!resume_skd010(before, ahead, packet)) return false;
        // It may place a MODE.TSX.
        if (tx) wait(AT_FUP_BOUND, *tx);
        return true;
      case PacketKind::MODE_TSX:
        if (tx) return false;  // two of them: they stand alone, tracing is off
        tx = make_tsx(packet);
        break;
      case PacketKind::PIP:
      case PacketKind::VMCS:
      case PacketKind::MODE_EXEC:
      case PacketKind::PWRE:
      case PacketKind::PWRX:
      case PacketKind::EVD:
        break;
      case PacketKind::EXSTOP:
      case PacketKind::PTW:
      case PacketKind::CFE:
      case PacketKind::TRIG:
        if ((packet.flags & Packet::IP_BIT) != 0) return false;
        break;
      default:
        if (!passes_by(packet.kind)) return false;
        break;
    }
  }
  return false;
}

// APL11: a TIP.PGD right behind the OVF says that tracing is off.
bool EventDecoder::recover_apl11() {
  packet::PacketDecoder ahead = packets_;
  for (Packet packet; ahead.next(packet) == Status::OK;) {
    if (packet.kind == PacketKind::TIP_PGD) {
      go_on_behind(ahead.state(), packet, false, 0);
      return true;
    }
    if (!passes_by(packet.kind)) return false;
  }
  return false;
}

// APL12: the FUP behind the OVF is wrong if what follows shows that tracing is off.
bool EventDecoder::apl12_applies(const packet::DecoderState& behind_fup) const {
  packet::PacketDecoder ahead = packets_;
  ahead.set_state(behind_fup);
  for (Packet packet; ahead.next(packet) == Status::OK;) {
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
        const bool has_fup = header_fup(ahead, fup);
        return !has_fup && ahead.position() < ahead.stream().size();
      }
      default:
        break;
    }
  }
  return false;
}

void EventDecoder::on_ovf(const Packet& packet) {
  watch_time(packet.kind);
  placer_.pause();
  give_all_unplaced();
  mode_known_ = false;
  header_.clear();
  first_psb_ = false;
  packet::PacketDecoder ahead = packets_;
  const Ahead found = look_for_fup(ahead);
  if (found == Ahead::FUP) {
    if (errata_.apl12 && apl12_applies(ahead.state())) {
      // Skip to behind the FUP; the packets between are timing packets.
      since_ = packet.offset;
      packets_.set_state(ahead.state());
      return give(make(EventKind::OVERFLOW));
    }
    return wait(AT_FUP_BOUND, make(EventKind::OVERFLOW));
  }
  if (errata_.skd010 && recover_skd010()) return;
  if (errata_.apl11 && found == Ahead::CONTRADICTION && recover_apl11()) return;
  if (found == Ahead::CONTRADICTION) return placer_.contradiction(Status::UNEXPECTED_PACKET);
  give(make(EventKind::OVERFLOW));
}

}  // namespace ptkit::flow
