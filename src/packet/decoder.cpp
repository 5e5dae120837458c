#include "packet/decoder.h"

#include <algorithm>

#include "packet/payloads.h"

namespace ptkit::packet {
namespace {

using base::Bytes;
using base::Status;

constexpr std::uint64_t kLastEffective = 0xFFFF'FFFF;  // largest address of 16 and 32-bit code

// Follows an escape byte to the packet in another table, if there is one.
Status follow_escapes(Bytes bytes, OpcodeEntry& entry, Packet& out) noexcept {
  std::size_t index = 0;
  bool mode = false;
  while (entry >= kEscape && entry != kUnclaimed) {
    if (++index == bytes.size()) return truncated(bytes, out);
    const auto table = static_cast<OpcodeTable>(entry - kEscape);
    mode = table == OpcodeTable::AFTER_99;
    entry = opcode_entry(table, bytes[index]);
  }
  if (entry != kUnclaimed) return Status::OK;
  out.size = static_cast<std::uint32_t>(index + 1);
  if (!mode) return Status::BAD_OPCODE;
  out.kind = PacketKind::MODE_EXEC;  // a MODE packet with a reserved leaf
  return Status::BAD_PACKET;
}

[[gnu::cold]] Status too_short(Bytes bytes, Packet& out) noexcept {
  if (out.kind == PacketKind::PSB && psb_prefix(bytes) < bytes.size()) {
    out.size = static_cast<std::uint32_t>(psb_prefix(bytes) + 1);
    return Status::BAD_PACKET;
  }
  return truncated(bytes, out);
}

// SKD007: an OVF replaced all but the first byte of a multi-byte CYC. The result reads as a CYC of two bytes
// (?? 02) and a CYC of one byte (f3). Otherwise two such CYCs never follow each other, because a counter that
// wraps sends a full one.
void repair_skd007(Bytes bytes, Packet& out) noexcept {
  if (out.size != 2 || bytes[1] != 0x02 || bytes.size() < 3 || bytes[2] != 0xf3) return;
  out.kind = PacketKind::OVF;
  out.payload = 0;
  out.size = 3;
}

// SKZ84: a TMA generated in a guest with a TSC offset or scale has invalid fields, and one more byte follows
// it.
Status skip_skz84(Bytes bytes, Packet& out) noexcept {
  out.kind = PacketKind::INVALID;
  out.payload = out.payload2 = 0;
  out.size = static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), 8));
  return Status::OK;
}

}  // namespace

Status PacketDecoder::next(Packet& out) noexcept {
  out = Packet{};
  out.offset = state_.position;
  if (state_.position >= stream_.size()) return Status::END_OF_STREAM;
  const Bytes bytes = stream_.subspan(static_cast<std::size_t>(state_.position));

  OpcodeEntry entry = opcode_entry(state_.block_open ? OpcodeTable::BLOCK : OpcodeTable::FIRST, bytes[0]);
  if (entry >= kEscape) {
    const Status status = follow_escapes(bytes, entry, out);
    if (status != Status::OK) return status;
  }
  out.kind = static_cast<PacketKind>(entry);
  const PacketRow& row = row_of(out.kind);
  if (bytes.size() < row.least) return too_short(bytes, out);
  out.size = row.least;
  Status status = read_payload({row, bytes, state_.block_items_4}, out);
  if (out.kind == PacketKind::CYC && errata_.skd007 && status == Status::OK) repair_skd007(bytes, out);
  if (out.kind == PacketKind::TMA && errata_.skz84 && status == Status::BAD_PACKET) {
    status = skip_skz84(bytes, out);
  }
  if (status != Status::OK) return status;
  apply(out);
  state_.position += out.size;
  return Status::OK;
}

void PacketDecoder::apply(Packet& packet) noexcept {
  state_.in_psb = state_.in_psb && continues_psb(packet.kind);
  switch (packet.kind) {
    case PacketKind::PSB:
      state_.in_psb = true;
      // A processor compresses the IPs after a PSB against zero.
      state_.last_ip = 0;
      state_.last_ip_known = true;
      if (cs_base_ != 0) find_mode(packet);
      break;
    case PacketKind::MODE_EXEC:
      apply_mode(packet);
      break;
    case PacketKind::OVF:
      if (cs_base_ != 0) find_mode(packet);
      break;
    case PacketKind::TIP:
    case PacketKind::TIP_PGE:
    case PacketKind::TIP_PGD:
    case PacketKind::FUP:
      apply_ip(packet);
      break;
    default:
      break;
  }
  if (state_.in_psb && packet.kind != PacketKind::PSB) packet.flags |= Packet::IN_PSB;
  const BlockEffect effect = row_of(packet.kind).block;
  if (effect == BlockEffect::KEEPS) return;
  state_.block_open = effect == BlockEffect::OPENS;
  state_.block_items_4 = state_.block_open && packet.payload2 != 0;
}

// IP compression: the IPBytes field gives the number of new low bytes; the others are those of the last IP.
void PacketDecoder::apply_ip(Packet& packet) noexcept {
  const std::uint64_t raw = packet.payload;
  std::uint64_t kept = 0;  // bits that come from the last IP
  std::uint64_t ip = raw;
  switch (packet.payload2) {
    case 0:
      return;
    case 1:
      kept = ~std::uint64_t{0xffff};
      break;
    case 2:
      kept = ~std::uint64_t{0xffffffff};
      break;
    case 3:
      ip = base::sign_extend(raw, 48);
      break;
    case 4:
      kept = ~std::uint64_t{0xffffffffffff};
      break;
    default:
      break;
  }
  state_.last_ip = ip | (state_.last_ip & kept);
  if (kept == 0) state_.last_ip_known = true;
  packet.ip = state_.last_ip;
  // Addresses above 32 bits are not effective addresses of such code.
  if (adds_cs_base() && packet.ip <= kLastEffective) packet.ip = (packet.ip + cs_base_) & kLastEffective;
  if (state_.last_ip_known) packet.flags |= Packet::IP_KNOWN;
}

// A MODE.Exec with both CS.L and CS.D gives no mode.
void PacketDecoder::apply_mode(const Packet& mode_exec) noexcept {
  if (mode_exec.payload != 0) state_.has_cs_base = mode_exec.payload != 64;
}

// The FUP of a PSB+ may precede its MODE.Exec. An overflow may have lost a MODE.Exec: then a PSB+ follows the
// FUP of the overflow.
void PacketDecoder::find_mode(const Packet& psb_or_ovf) noexcept {
  PacketDecoder lookahead = *this;
  lookahead.cs_base_ = 0;
  lookahead.state_.position += psb_or_ovf.size;
  bool in_header = state_.in_psb;
  bool resumed = false;
  for (Packet packet; lookahead.next(packet) == Status::OK;) {
    switch (packet.kind) {
      case PacketKind::MODE_EXEC:
        if (in_header) apply_mode(packet);
        return;
      case PacketKind::PSB:
        if (in_header) return;
        in_header = true;
        break;
      case PacketKind::FUP:
        if (!in_header && resumed) return;
        resumed = true;
        break;
      case PacketKind::PSBEND:
      case PacketKind::OVF:
      case PacketKind::TNT_8:
      case PacketKind::TNT_64:
      case PacketKind::TIP:
      case PacketKind::TIP_PGE:
      case PacketKind::TIP_PGD:
        return;
      default:
        break;
    }
  }
}

Status PacketDecoder::sync_forward() noexcept {
  // A PSB has 16 bytes. A decoded PSB ends at or before the position, so a PSB that begins less than 16 bytes
  // before the position is not decoded yet.
  const std::uint64_t back = std::min<std::uint64_t>(state_.position, 15);
  return sync_forward(state_.position - back);
}

Status PacketDecoder::sync_forward(std::uint64_t from) noexcept {
  const bool has_cs_base = state_.has_cs_base;
  state_ = DecoderState{};
  state_.has_cs_base = has_cs_base;
  state_.position = find_psb(stream_, from);
  return state_.position < stream_.size() ? Status::OK : Status::NO_SYNC;
}

std::uint64_t find_psb(Bytes stream, std::uint64_t from) noexcept {
  constexpr std::size_t kSize = 16;
  const auto pair_at = [stream](std::size_t at) { return stream[at] == 0x02 && stream[at + 1] == 0x82; };
  const std::size_t size = stream.size();
  if (from >= size || size - from < kSize) return size;
  const auto first = static_cast<std::size_t>(from);
  // One of any 15 successive positions is in the first 15 bytes of a PSB, so every 15th position is enough.
  for (std::size_t at = first + kSize - 2; at + 1 < size; at += kSize - 1) {
    std::size_t begin = at;
    if (stream[at] == 0x82 && stream[at - 1] == 0x02) --begin;
    if (!pair_at(begin)) continue;
    std::size_t end = begin + 2;
    while (end + 1 < size && pair_at(end)) end += 2;
    while (begin >= first + 2 && pair_at(begin - 2)) begin -= 2;
    const std::size_t whole = (end - begin) / kSize;
    if (whole != 0) return end - whole * kSize;
  }
  return size;
}

}  // namespace ptkit::packet
