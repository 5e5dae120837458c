#include "flow/libipt/packets.h"

#include <limits>
#include <new>

#include "flow/libipt/library.h"
#include "packet/decoder.h"

namespace ptkit::flow::libipt {
namespace {

using packet::Packet;
using packet::PacketKind;

void set(Packet& out, PacketKind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0) noexcept {
  out.kind = kind;
  out.payload = payload;
  out.payload2 = payload2;
}

void flag(Packet& out, bool on, Packet::Flag bit) noexcept {
  if (on) out.flags = static_cast<std::uint8_t>(out.flags | bit);
}

// libipt has the oldest branch in the highest valid bit; ptkit has it in bit 0.
void set_tnt(Packet& out, PacketKind kind, const pt_packet_tnt& tnt) noexcept {
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < tnt.bit_size; ++i) bits |= (tnt.payload >> (tnt.bit_size - 1U - i) & 1U) << i;
  set(out, kind, bits, tnt.bit_size);
}

void set_ip(Packet& out, PacketKind kind, const pt_packet_ip& ip) noexcept {
  set(out, kind, ip.ip, static_cast<std::uint64_t>(ip.ipc));
}

bool set_mode(Packet& out, const pt_packet_mode& mode) noexcept {
  if (mode.leaf == pt_mol_tsx) {
    set(out, PacketKind::MODE_TSX, mode.bits.tsx.intx | static_cast<std::uint64_t>(mode.bits.tsx.abrt) << 1);
    return true;
  }
  if (mode.leaf != pt_mol_exec) return false;
  const pt_packet_mode_exec& exec = mode.bits.exec;
  const std::uint64_t bits = exec.csl ? 64 : exec.csd ? 32 : 16;
  std::uint64_t fields = exec.csl | static_cast<std::uint64_t>(exec.csd) << 1;
#if LIBIPT_VERSION >= 0x201
  fields |= static_cast<std::uint64_t>(exec.iflag) << 2;
#endif
  set(out, PacketKind::MODE_EXEC, bits, fields);
  return true;
}

bool set_time(Packet& out, const pt_packet& from) noexcept {
  const auto& payload = from.payload;
  switch (from.type) {
    case ppt_tsc:
      set(out, PacketKind::TSC, payload.tsc.tsc);
      return true;
    case ppt_mtc:
      set(out, PacketKind::MTC, payload.mtc.ctc);
      return true;
    case ppt_tma:
      set(out, PacketKind::TMA, payload.tma.ctc, payload.tma.fc);
      return true;
    case ppt_cyc:
      set(out, PacketKind::CYC, payload.cyc.value);
      return true;
    case ppt_cbr:
      set(out, PacketKind::CBR, payload.cbr.ratio);
      return true;
    default:
      return false;
  }
}

bool set_power(Packet& out, const pt_packet& from) noexcept {
  const auto& payload = from.payload;
  switch (from.type) {
    case ppt_exstop:
      set(out, PacketKind::EXSTOP);
      flag(out, payload.exstop.ip, Packet::IP_BIT);
      return true;
    case ppt_mwait:
      set(out, PacketKind::MWAIT, payload.mwait.hints, payload.mwait.ext);
      return true;
    case ppt_pwre:
      set(out, PacketKind::PWRE,
          static_cast<std::uint64_t>(payload.pwre.state) << 4 | payload.pwre.sub_state);
      flag(out, payload.pwre.hw, Packet::HW);
      return true;
    case ppt_pwrx:
      set(out, PacketKind::PWRX, static_cast<std::uint64_t>(payload.pwrx.last) << 4 | payload.pwrx.deepest,
          payload.pwrx.interrupt | static_cast<std::uint64_t>(payload.pwrx.store) << 2 |
              static_cast<std::uint64_t>(payload.pwrx.autonomous) << 3);
      return true;
    case ppt_ptw:
      set(out, PacketKind::PTW, payload.ptw.payload, payload.ptw.plc);
      flag(out, payload.ptw.ip, Packet::IP_BIT);
      return true;
    default:
      return false;
  }
}

bool set_event(Packet& out, const pt_packet& from) noexcept {
#if LIBIPT_VERSION >= 0x202
  if (from.type == ppt_trig) {
    const pt_packet_trig& trig = from.payload.trig;
    set(out, PacketKind::TRIG, trig.trbv, trig.icntv ? trig.icnt : 0U);
    flag(out, trig.ip, Packet::IP_BIT);
    flag(out, trig.icntv, Packet::ICNT);
    flag(out, trig.mult, Packet::MULT);
    return true;
  }
#endif
#if LIBIPT_VERSION >= 0x201
  if (from.type == ppt_cfe) {
    const pt_packet_cfe& cfe = from.payload.cfe;
    set(out, PacketKind::CFE, static_cast<std::uint64_t>(cfe.type), cfe.vector);
    flag(out, cfe.ip, Packet::IP_BIT);
    return true;
  }
  if (from.type == ppt_evd) {
    set(out, PacketKind::EVD, static_cast<std::uint64_t>(from.payload.evd.type), from.payload.evd.payload);
    return true;
  }
#endif
  static_cast<void>(out);
  static_cast<void>(from);
  return false;
}

bool to_packet(const pt_packet& from, Packet& out) noexcept {
  const auto& payload = from.payload;
  switch (from.type) {
    case ppt_pad:
      set(out, PacketKind::PAD, from.size);
      return true;
    case ppt_invalid:  // skipped because of an erratum
      set(out, PacketKind::INVALID);
      return true;
    case ppt_psb:
      set(out, PacketKind::PSB);
      return true;
    case ppt_psbend:
      set(out, PacketKind::PSBEND);
      return true;
    case ppt_fup:
      set_ip(out, PacketKind::FUP, payload.ip);
      return true;
    case ppt_tip:
      set_ip(out, PacketKind::TIP, payload.ip);
      return true;
    case ppt_tip_pge:
      set_ip(out, PacketKind::TIP_PGE, payload.ip);
      return true;
    case ppt_tip_pgd:
      set_ip(out, PacketKind::TIP_PGD, payload.ip);
      return true;
    case ppt_tnt_8:
      set_tnt(out, PacketKind::TNT_8, payload.tnt);
      return true;
    case ppt_tnt_64:
      set_tnt(out, PacketKind::TNT_64, payload.tnt);
      return true;
    case ppt_mode:
      return set_mode(out, payload.mode);
    case ppt_pip:
      set(out, PacketKind::PIP, payload.pip.cr3);
      flag(out, payload.pip.nr, Packet::NR);
      return true;
    case ppt_vmcs:
      set(out, PacketKind::VMCS, payload.vmcs.base);
      return true;
    case ppt_stop:
      set(out, PacketKind::TRACE_STOP);
      return true;
    case ppt_ovf:
      set(out, PacketKind::OVF);
      return true;
    case ppt_mnt:
      set(out, PacketKind::MNT, payload.mnt.payload);
      return true;
    default:
      return set_time(out, from) || set_power(out, from) || set_event(out, from);
  }
}

bool has_ip(PacketKind kind) noexcept {
  return kind == PacketKind::TIP || kind == PacketKind::TIP_PGE || kind == PacketKind::TIP_PGD ||
         kind == PacketKind::FUP;
}

}  // namespace

class ReferencePackets::Impl {
 public:
  Impl(base::Bytes stream, const trace::Configuration& configuration) : stream_(stream) {
    const pt_config config = make_config(stream, configuration);
    decoder_.reset(pt_pkt_alloc_decoder(&config));
    if (decoder_ == nullptr && !stream.empty()) throw std::bad_alloc();
    if (decoder_ != nullptr) static_cast<void>(pt_pkt_sync_set(decoder_.get(), 0));
  }

  base::Status next(Packet& out) noexcept {
    out = Packet{};
    out.offset = position_;
    if (position_ >= stream_.size()) return base::Status::END_OF_STREAM;
    pt_packet raw{};
    const int size = pt_pkt_next(decoder_.get(), &raw, sizeof(raw));
    if (size < 0) return to_status(size);
    out.size = static_cast<std::uint32_t>(size);
    if (!to_packet(raw, out)) {
      static_cast<void>(set_position(position_));
      return base::Status::BAD_OPCODE;
    }
    position_ += static_cast<std::uint64_t>(size);
    if (out.kind == PacketKind::PAD) join_pads(out);
    track_state(out);
    return base::Status::OK;
  }

  base::Status sync_forward(std::uint64_t from) noexcept {
    const std::uint64_t found = packet::find_psb(stream_, from);
    last_ip_ = 0;
    last_ip_known_ = false;
    in_psb_ = false;
    const base::Status status = set_position(found);
    return found == stream_.size() ? base::Status::NO_SYNC : status;
  }

  base::Status set_position(std::uint64_t offset) noexcept {
    position_ = offset;
    if (offset >= stream_.size()) {
      position_ = stream_.size();
      return base::Status::OK;
    }
    const int status = pt_pkt_sync_set(decoder_.get(), offset);
    return status < 0 ? to_status(status) : base::Status::OK;
  }

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

 private:
  void join_pads(Packet& out) noexcept {
    std::uint64_t end = position_;
    while (end < stream_.size() && stream_[end] == 0 &&
           end - out.offset < std::numeric_limits<std::uint32_t>::max()) {
      ++end;
    }
    out.size = static_cast<std::uint32_t>(end - out.offset);
    out.payload = out.size;
    static_cast<void>(set_position(end));
  }

  void track_state(Packet& out) noexcept {
    if (out.kind == PacketKind::PSB) {
      in_psb_ = true;
      last_ip_ = 0;
      last_ip_known_ = true;
      return;
    }
    in_psb_ = in_psb_ && packet::continues_psb(out.kind);
    flag(out, in_psb_, Packet::IN_PSB);
    if (has_ip(out.kind) && out.payload2 != pt_ipc_suppressed) rebuild_ip(out);
  }

  // SDM vol. 3, "IP Compression". libipt has this in its flow decoders only.
  void rebuild_ip(Packet& out) noexcept {
    const auto keep = [this](unsigned bits) { return last_ip_ >> bits << bits; };
    bool known = last_ip_known_;
    switch (out.payload2) {
      case pt_ipc_update_16:
        last_ip_ = keep(16) | out.payload;
        break;
      case pt_ipc_update_32:
        last_ip_ = keep(32) | out.payload;
        break;
      case pt_ipc_update_48:
        last_ip_ = keep(48) | out.payload;
        break;
      case pt_ipc_sext_48:
        last_ip_ = base::sign_extend(out.payload, 48);
        known = true;
        break;
      default:
        last_ip_ = out.payload;
        known = true;
        break;
    }
    last_ip_known_ = known;
    if (!known) return;
    out.ip = last_ip_;
    flag(out, true, Packet::IP_KNOWN);
  }

  base::Bytes stream_;
  PacketDecoderPtr decoder_;
  std::uint64_t position_ = 0;
  std::uint64_t last_ip_ = 0;
  bool last_ip_known_ = false;
  bool in_psb_ = false;
};

ReferencePackets::ReferencePackets(base::Bytes stream, const trace::Configuration& configuration)
    : impl_(std::make_unique<Impl>(stream, configuration)) {}
ReferencePackets::~ReferencePackets() = default;
ReferencePackets::ReferencePackets(ReferencePackets&&) noexcept = default;
ReferencePackets& ReferencePackets::operator=(ReferencePackets&&) noexcept = default;

base::Status ReferencePackets::next(packet::Packet& out) noexcept { return impl_->next(out); }
base::Status ReferencePackets::sync_forward(std::uint64_t from) noexcept { return impl_->sync_forward(from); }
base::Status ReferencePackets::set_position(std::uint64_t offset) noexcept {
  return impl_->set_position(offset);
}
std::uint64_t ReferencePackets::position() const noexcept { return impl_->position(); }

}  // namespace ptkit::flow::libipt
