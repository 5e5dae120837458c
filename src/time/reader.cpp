#include "time/reader.h"

#include <algorithm>

namespace ptkit::time {
namespace {

using base::Status;
using packet::Packet;
using packet::PacketKind;

// No sleep has more cycles. The sum of a frame's cycles has to be exact in a double.
constexpr std::uint64_t kMaxCycles = std::uint64_t{1} << 40;

bool is_tnt(PacketKind kind) noexcept { return kind == PacketKind::TNT_8 || kind == PacketKind::TNT_64; }

bool is_full(const Packet& packet) noexcept {
  return packet.payload2 >= (packet.kind == PacketKind::TNT_8 ? 6U : 47U);
}

}  // namespace

std::uint64_t extend_tsc(std::uint64_t last, std::uint64_t payload) noexcept {
  constexpr std::uint64_t kTscMask = (std::uint64_t{1} << 56) - 1;
  std::uint64_t tsc = (last & ~kTscMask) | (payload & kTscMask);
  if (tsc < last && last - tsc > kTscMask / 2) tsc += kTscMask + 1;
  return tsc;
}

TntTime TntCensus::judge() const noexcept {
  constexpr std::uint64_t kEnough = 8;
  if (partial_then_cycles >= kEnough && partial_then_cycles * 8 >= partial_then_packet) {
    return TntTime::FIRST_BRANCH;
  }
  if (partial_then_packet >= kEnough && partial_then_cycles * 64 <= partial_then_packet)
    return TntTime::PACKET;
  // A partial TNT packet is emitted before the CYC of the packet that forces it out.
  if (partial_alone >= kEnough && full_with_cyc >= kEnough && full_alone == 0 && partial_with_cyc == 0) {
    return TntTime::PACKET;
  }
  return TntTime::UNKNOWN;
}

FrameReader::FrameReader(base::Bytes stream, std::span<const trace::KnownLoss> losses,
                         const packet::Errata& errata)
    : decoder_(stream, {}, errata), losses_(losses) {
  ended_ = decoder_.sync_forward(0) != Status::OK;
  first_psb_ = decoder_.position();
}

void FrameReader::begin_at(std::uint64_t psb, const CarriedTime& carried) {
  tsc_ = carried.tsc;
  ratio_ = carried.ratio;
  ratio_before_ = carried.ratio_before;
  ended_ = decoder_.sync_forward(psb) != Status::OK;
  while (next_loss_ < losses_.size() && losses_[next_loss_].offset <= psb) ++next_loss_;
}

// True if bytes are missing before `end`. Decoding then continues at the first PSB after the loss.
bool FrameReader::cross_loss(std::uint64_t end) {
  bool crossed = false;
  std::uint64_t at = 0;
  while (next_loss_ < losses_.size() && losses_[next_loss_].offset < end) {
    at = losses_[next_loss_].offset;
    crossed = crossed || at > first_psb_;
    ++next_loss_;
  }
  if (!crossed) return false;
  lost_ = cycles_lost_ = true;
  ended_ = decoder_.sync_forward(at) != Status::OK;
  return true;
}

bool FrameReader::read(Packet& packet) {
  while (!ended_) {
    const Status status = decoder_.next(packet);
    if (status == Status::END_OF_STREAM) {
      ended_ = true;
      return false;
    }
    if (status == Status::OK) {
      if (cross_loss(packet.offset + packet.size)) continue;
      return true;
    }
    lost_ = cycles_lost_ = true;
    if (!cross_loss(packet.offset + 1)) ended_ = decoder_.sync_forward(packet.offset + 1) != Status::OK;
  }
  return false;
}

bool FrameReader::next(Frame& frame) {
  frame.tsc_mtc_points.clear();
  frame.cycles.clear();
  frame.opened = opening_known_;
  frame.end = FrameEnd::STREAM;
  frame.end_in_psb = false;
  frame.end_tma = {};
  if (opening_known_) frame.tsc_mtc_points.push_back(opening_);
  if (ended_) return false;
  Packet packet;
  while (frame.end == FrameEnd::STREAM) {
    scan(frame);
    if (!read(packet)) break;
    add(packet, frame);
  }
  frame.next_ratio = ratio_;
  frame.lost_at_end = lost_;
  frame.psb = psb_;
  return true;
}

void FrameReader::add(const Packet& packet, Frame& frame) {
  if (packet.kind == PacketKind::PAD) return;
  if (counting_) count(packet);
  switch (packet.kind) {
    case PacketKind::TSC:
      close_at_tsc(packet, frame);
      break;
    case PacketKind::MTC:
      add_mtc(packet, frame);
      break;
    case PacketKind::CYC:
      add_cyc(packet, frame);
      break;
    default:
      add_other(packet, frame);
      break;
  }
  after_cyc_ = packet.kind == PacketKind::CYC;
  if (frame.end != FrameEnd::STREAM || frame.points() < kMaxPoints) return;
  if (packet.kind == PacketKind::MTC || frame.points() >= 2 * kMaxPoints) cut(frame);
}

// Ends the frame. Its last point opens the next frame, and has a known time there.
void FrameReader::cut(Frame& frame) {
  frame.end = FrameEnd::CUT;
  TscMtcPoint opening;
  if (frame.ends_with_cycles()) {
    const std::size_t last = frame.cycles.size - 1;
    opening.extent = frame.cycles.extent[last];
    opening.joined = true;
    opening.lost = (frame.cycles.flags[last] & Cycles::LOST) != 0;
  } else {
    opening = frame.tsc_mtc_points.back();
  }
  opening.mtc = false;
  opening.value = 0;
  opening.cycles = 0;
  opening_ = opening;
  opening_known_ = frame.opened;
}

// A partial TNT packet that this packet forced out may be in between.
bool FrameReader::in_cycle_of_cyc() const noexcept {
  return after_cyc_ || (follow_ == Follow::REST && tnt_time_ == TntTime::PACKET);
}

bool FrameReader::take_lost() noexcept {
  const bool lost = lost_;
  lost_ = false;
  return lost;
}

void FrameReader::add_cyc(const Packet& packet, Frame& frame) {
  Cycles& cycles = frame.cycles;
  cycles.reserve(1);
  const std::size_t at = cycles.size++;
  const bool lost = take_lost();
  cycles.extent[at] = {packet.offset, packet.offset};
  cycles.weight[at] = cycles_lost_ ? 0 : static_cast<double>(std::min(packet.payload, kMaxCycles));
  cycles.ratio[at] = ratio_ == 0 ? std::uint8_t{0} : std::max(ratio_, ratio_before_);
  cycles.flags[at] = lost ? std::uint8_t{Cycles::LOST} : std::uint8_t{0};
  cycles.any_lost = cycles.any_lost || lost;
  cycles.ratios_differ = cycles.ratios_differ || cycles.ratio[at] != cycles.ratio[0];
  cycles_lost_ = false;
  ratio_before_ = 0;
  psb_after_cyc_ = false;
  follow_ = Follow::FIRST;
}

void FrameReader::add_mtc(const Packet& packet, Frame& frame) {
  push_mtc(packet.offset, packet.payload & 0xff, in_cycle_of_cyc(), frame);
  follow_ = Follow::NOTHING;
}

void FrameReader::push_mtc(std::uint64_t at, std::uint64_t payload, bool joined, Frame& frame) {
  psb_after_cyc_ = false;
  TscMtcPoint& point = frame.tsc_mtc_points.emplace_back();
  point.extent = {at, at};
  point.mtc = true;
  point.value = payload;
  point.cycles = frame.cycles.size;
  point.joined = joined;
  point.lost = take_lost();
}

// Packets without a time: which of them have the time of the preceding CYC, and their clock parameters.
void FrameReader::add_other(const Packet& packet, Frame& frame) {
  Follow follow = Follow::NOTHING;
  switch (packet.kind) {
    case PacketKind::PSB:
      psb_ = packet.offset;
      psb_after_cyc_ = in_cycle_of_cyc();
      break;
    case PacketKind::OVF:
      lost_ = cycles_lost_ = true;
      break;
    case PacketKind::CBR:
      set_ratio(packet.payload);
      break;
    case PacketKind::PSBEND:
    case PacketKind::TMA:
    case PacketKind::TRACE_STOP:
    case PacketKind::MNT:
      break;
    case PacketKind::TNT_8:
    case PacketKind::TNT_64:
      // A packet that the next one forced out has the time of that one.
      if (tnt_time_ == TntTime::PACKET && !is_full(packet)) follow = Follow::REST;
      break;
    case PacketKind::FUP:
    case PacketKind::PIP:
    case PacketKind::VMCS:
    case PacketKind::MODE_EXEC:
    case PacketKind::MODE_TSX:
      follow = Follow::REST;  // compound packet events are contiguous
      break;
    default:
      if ((packet.flags & Packet::IP_BIT) != 0) follow = Follow::REST;  // its FUP
      break;
  }
  const bool eligible = packet.kind != PacketKind::PSB && packet.kind != PacketKind::OVF &&
                        packet.kind != PacketKind::PSBEND && packet.kind != PacketKind::TMA &&
                        packet.kind != PacketKind::CBR && packet.kind != PacketKind::TRACE_STOP &&
                        (packet.flags & Packet::IN_PSB) == 0;
  if (follow_ != Follow::NOTHING && eligible && frame.points() > 0) {
    frame.last_extent().last = packet.offset;
    if (is_tnt(packet.kind) && frame.ends_with_cycles()) {
      std::uint8_t& flags = frame.cycles.flags[frame.cycles.size - 1];
      if (tnt_time_ != TntTime::PACKET) flags |= Cycles::BEFORE_TNT;
    }
    follow_ = follow;
  } else {
    follow_ = Follow::NOTHING;
  }
}

void FrameReader::set_ratio(std::uint64_t ratio) noexcept {
  const auto now = static_cast<std::uint8_t>(ratio);
  if (now == ratio_) return;
  ratio_before_ = std::max(ratio_before_, ratio_);
  ratio_ = now;
}

void FrameReader::count(const Packet& packet) noexcept {
  if (packet.kind == PacketKind::CYC) return count_cyc(packet.payload);
  if (!is_tnt(packet.kind)) return count_other();
  if (packet.kind == PacketKind::TNT_64) ++census_.long_packets;
  count_tnt(is_full(packet), after_cyc_);
}

void FrameReader::count_cyc(std::uint64_t cycles) noexcept {
  if (after_partial_tnt_) ++(cycles > 0 ? census_.partial_then_cycles : census_.partial_then_packet);
  after_partial_tnt_ = false;
}

void FrameReader::count_tnt(bool full, bool after_cyc) noexcept {
  count_other();
  ++(full ? (after_cyc ? census_.full_with_cyc : census_.full_alone)
          : (after_cyc ? census_.partial_with_cyc : census_.partial_alone));
  after_partial_tnt_ = !full && after_cyc;
}

void FrameReader::count_other() noexcept {
  if (after_partial_tnt_) ++census_.partial_then_packet;
  after_partial_tnt_ = false;
}

void FrameReader::close_at_tsc(const Packet& packet, Frame& frame) {
  const bool in_psb = (packet.flags & Packet::IN_PSB) != 0;
  tsc_ = extend_tsc(tsc_, packet.payload);
  TscMtcPoint point;
  // A PSB+ has the state and the time at its PSB.
  point.extent.first = in_psb ? psb_ : packet.offset;
  if (frame.points() > 0) point.extent.first = std::max(point.extent.first, frame.last_extent().last + 1);
  point.extent.last = packet.offset;
  point.cycles = frame.cycles.size;
  point.joined = in_cycle_of_cyc() || (in_psb && psb_after_cyc_);
  point.lost = take_lost();
  follow_ = Follow::NOTHING;
  frame.tsc_mtc_points.push_back(point);
  frame.end = FrameEnd::TSC;
  frame.end_tsc = tsc_;
  frame.end_in_psb = in_psb;
  read_group(in_psb, frame);
  opening_ = frame.tsc_mtc_points.back();
  opening_.cycles = 0;
  opening_known_ = true;
}

// Reads the TMA of the TSC, and the rest of a PSB+.
void FrameReader::read_group(bool in_psb, Frame& frame) {
  Packet packet;
  for (;;) {
    const packet::DecoderState before = decoder_.state();
    if (decoder_.next(packet) != Status::OK) {
      decoder_.set_state(before);
      return;
    }
    const bool end = packet.kind == PacketKind::PSBEND;
    const bool inside = in_psb && (end || (packet.flags & Packet::IN_PSB) != 0) &&
                        packet.kind != PacketKind::TSC && packet.kind != PacketKind::OVF &&
                        packet.kind != PacketKind::MTC && packet.kind != PacketKind::CYC;
    if (packet.kind == PacketKind::TMA && !frame.end_tma.known) {
      frame.end_tma = {true, static_cast<std::uint16_t>(packet.payload),
                       static_cast<std::uint16_t>(packet.payload2)};
    } else if (packet.kind == PacketKind::CBR && inside) {
      set_ratio(packet.payload);
    } else if (packet.kind != PacketKind::PAD && !inside) {
      decoder_.set_state(before);
      return;
    }
    if (packet.kind != PacketKind::PAD) frame.tsc_mtc_points.back().extent.last = packet.offset;
    if (end || (!in_psb && packet.kind == PacketKind::TMA)) return;
  }
}

}  // namespace ptkit::time
