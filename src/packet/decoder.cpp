#include "packet/decoder.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "packet/opcodes.h"

namespace ptkit::packet {
namespace {

using base::Bytes;
using base::load_le;
using base::Status;

constexpr std::uint64_t kLastEffective = 0xFFFF'FFFF;  // largest address of 16 and 32-bit code

// Readers: bytes to payload. Each reader gets at least the row's `least` bytes, and `out.size` is that
// number. Readers of longer packets check and raise it. No reader changes decoder state.

Status truncated(Bytes bytes, Packet& out) noexcept {
  out.size = static_cast<std::uint32_t>(bytes.size());
  return Status::TRUNCATED_PACKET;
}

Status read_pad(Bytes bytes, Packet& out) noexcept {
  const std::size_t limit = std::min<std::size_t>(bytes.size(), std::numeric_limits<std::uint32_t>::max());
  std::size_t length = 1;
  while (length + 8 <= limit && load_le<8>(bytes.data() + length) == 0) length += 8;
  while (length < limit && bytes[length] == 0) ++length;
  out.payload = length;
  out.size = static_cast<std::uint32_t>(length);
  return Status::OK;
}

// Number of bytes that match the pattern 02 82 02 82 ...
std::size_t psb_prefix(Bytes bytes) noexcept {
  const std::size_t limit = std::min<std::size_t>(bytes.size(), 16);
  std::size_t length = 0;
  while (length < limit && bytes[length] == (length % 2 == 0 ? 0x02 : 0x82)) ++length;
  return length;
}

Status read_psb(Bytes bytes, Packet& out) noexcept {
  constexpr std::uint64_t kHalf = 0x8202820282028202;
  if (load_le<8>(bytes.data()) == kHalf && load_le<8>(bytes.data() + 8) == kHalf) return Status::OK;
  out.size = static_cast<std::uint32_t>(psb_prefix(bytes) + 1);
  return Status::BAD_PACKET;
}

// Moves bit 0 to bit 63 and so on.
constexpr std::uint64_t reverse_bits(std::uint64_t bits) noexcept {
  bits = (bits >> 1 & 0x5555555555555555) | (bits & 0x5555555555555555) << 1;
  bits = (bits >> 2 & 0x3333333333333333) | (bits & 0x3333333333333333) << 2;
  bits = (bits >> 4 & 0x0f0f0f0f0f0f0f0f) | (bits & 0x0f0f0f0f0f0f0f0f) << 4;
  bits = (bits >> 8 & 0x00ff00ff00ff00ff) | (bits & 0x00ff00ff00ff00ff) << 8;
  bits = (bits >> 16 & 0x0000ffff0000ffff) | (bits & 0x0000ffff0000ffff) << 16;
  return bits >> 32 | bits << 32;
}

// The highest set bit is the stop bit; the bit below it is the oldest branch.
Status read_tnt(std::uint64_t bits, Packet& out) noexcept {
  const auto count = static_cast<unsigned>(std::bit_width(bits));
  if (count < 2) return Status::BAD_PACKET;
  const std::uint64_t below = bits ^ std::uint64_t{1} << (count - 1);
  out.payload = reverse_bits(below) >> (65 - count);
  out.payload2 = count - 1;
  return Status::OK;
}

Status read_ip(Bytes bytes, Packet& out) noexcept {
  const unsigned ip_bytes = bytes[0] >> 5;
  out.payload2 = ip_bytes;
  constexpr std::uint8_t kLengths[8] = {0, 2, 4, 6, 6, 0xff, 8, 0xff};
  const std::size_t length = kLengths[ip_bytes];
  if (length == 0xff) return Status::BAD_IP_COMPRESSION;
  if (bytes.size() < 1 + length) return truncated(bytes, out);
  switch (length) {
    case 2:
      out.payload = load_le<2>(bytes.data() + 1);
      break;
    case 4:
      out.payload = load_le<4>(bytes.data() + 1);
      break;
    case 6:
      out.payload = load_le<6>(bytes.data() + 1);
      break;
    case 8:
      out.payload = load_le<8>(bytes.data() + 1);
      break;
    default:
      break;
  }
  out.size = static_cast<std::uint32_t>(1 + length);
  return Status::OK;
}

void read_pip(Bytes bytes, Packet& out) noexcept {
  const std::uint64_t bits = load_le<6>(bytes.data() + 2);
  if (bits & 1) out.flags |= Packet::NR;
  out.payload = bits >> 1 << 5;
}

void read_mode_exec(Bytes bytes, Packet& out) noexcept {
  constexpr std::uint8_t kWidths[4] = {16, 64, 32, 0};  // by CS.L and CS.D
  out.payload2 = bytes[1] & 7;
  out.payload = kWidths[bytes[1] & 3];
}

void read_word(Bytes bytes, std::size_t opcode, Packet& out) noexcept {
  switch (out.size - opcode) {
    case 1:
      out.payload = bytes[opcode];
      break;
    case 7:
      out.payload = load_le<7>(bytes.data() + opcode);
      break;
    default:
      out.payload = load_le<8>(bytes.data() + opcode);
      break;
  }
}

// CTC[15:0], a reserved byte, FastCounter[8:0], 7 reserved bits.
Status read_tma(Bytes bytes, Packet& out) noexcept {
  if (bytes[4] != 0 || (bytes[6] & 0xfe) != 0) return Status::BAD_PACKET;
  out.payload = load_le<2>(bytes.data() + 2);
  out.payload2 = load_le<2>(bytes.data() + 5);
  return Status::OK;
}

// First byte: 5 bits, continuation in bit 2. Other bytes: 7 bits, continuation in bit 0.
Status read_cyc(Bytes bytes, Packet& out) noexcept {
  std::uint64_t value = bytes[0] >> 3;
  std::size_t length = 1;
  bool more = (bytes[0] & 4) != 0;
  for (unsigned shift = 5; more; shift += 7) {
    if (length == bytes.size()) return truncated(bytes, out);
    const std::uint8_t byte = bytes[length++];
    const std::uint64_t bits = byte >> 1;
    out.size = static_cast<std::uint32_t>(length);
    if (shift >= 64 || bits << shift >> shift != bits) return Status::BAD_PACKET;
    value |= bits << shift;
    more = (byte & 1) != 0;
  }
  out.payload = value;
  out.size = static_cast<std::uint32_t>(length);
  return Status::OK;
}

Status read_ptw(Bytes bytes, Packet& out) noexcept {
  const unsigned payload_bytes = bytes[1] >> 5 & 3;
  out.payload2 = payload_bytes;
  if (bytes[1] & 0x80) out.flags |= Packet::IP_BIT;
  if (payload_bytes > 1) return Status::BAD_PACKET;
  if (payload_bytes == 0) {
    out.payload = load_le<4>(bytes.data() + 2);
    return Status::OK;
  }
  if (bytes.size() < 10) return truncated(bytes, out);
  out.payload = load_le<8>(bytes.data() + 2);
  out.size = 10;
  return Status::OK;
}

void read_mwait(Bytes bytes, Packet& out) noexcept {
  out.payload = load_le<4>(bytes.data() + 2);
  out.payload2 = load_le<4>(bytes.data() + 6);
}

// The manual and perf have HW in bit 7, libipt in bit 3; the other one is reserved (zero) for each.
void read_pwre(Bytes bytes, Packet& out) noexcept {
  if (bytes[2] & 0x88) out.flags |= Packet::HW;
  out.payload = bytes[3];
}

void read_pwrx(Bytes bytes, Packet& out) noexcept {
  out.payload = bytes[2];
  out.payload2 = bytes[3] & 0xf;
}

void read_bbp(Bytes bytes, Packet& out) noexcept {
  out.payload = bytes[2] & 0x1f;
  out.payload2 = bytes[2] >> 7;
}

Status read_bip(Bytes bytes, bool items_4, Packet& out) noexcept {
  out.payload = bytes[0] >> 3;
  if (items_4) {
    out.payload2 = load_le<4>(bytes.data() + 1);
    return Status::OK;
  }
  if (bytes.size() < 9) return truncated(bytes, out);
  out.payload2 = load_le<8>(bytes.data() + 1);
  out.size = 9;
  return Status::OK;
}

void read_cfe(Bytes bytes, Packet& out) noexcept {
  if (bytes[2] & 0x80) out.flags |= Packet::IP_BIT;
  out.payload = bytes[2] & 0x1f;
  out.payload2 = bytes[3];
}

void read_evd(Bytes bytes, Packet& out) noexcept {
  out.payload = bytes[2] & 0x1f;
  out.payload2 = load_le<8>(bytes.data() + 3);
}

// Second byte: IP in bit 7, ICNTV in bit 6, MULT in bit 5; then TRBV; then ICNT if ICNTV.
Status read_trig(Bytes bytes, Packet& out) noexcept {
  if (bytes[1] & 0x80) out.flags |= Packet::IP_BIT;
  if (bytes[1] & 0x20) out.flags |= Packet::MULT;
  out.payload = bytes[2];
  if ((bytes[1] & 0x40) == 0) return Status::OK;
  if (bytes.size() < 5) return truncated(bytes, out);
  out.flags |= Packet::ICNT;
  out.payload2 = load_le<2>(bytes.data() + 3);
  out.size = 5;
  return Status::OK;
}

Status read_payload(const PacketRow& row, Bytes bytes, bool items_4, Packet& out) noexcept {
  switch (row.payload) {
    case PayloadKind::EMPTY:
      return Status::OK;
    case PayloadKind::PAD:
      return read_pad(bytes, out);
    case PayloadKind::PSB:
      return read_psb(bytes, out);
    case PayloadKind::TNT_8:
      return read_tnt(bytes[0] >> 1, out);
    case PayloadKind::TNT_64:
      return read_tnt(load_le<6>(bytes.data() + 2), out);
    case PayloadKind::IP:
      return read_ip(bytes, out);
    case PayloadKind::PIP:
      read_pip(bytes, out);
      return Status::OK;
    case PayloadKind::VMCS:
      out.payload = load_le<5>(bytes.data() + 2) << 12;
      return Status::OK;
    case PayloadKind::MODE_EXEC:
      read_mode_exec(bytes, out);
      return Status::OK;
    case PayloadKind::MODE_TSX:
      out.payload = bytes[1] & 3;
      return Status::OK;
    case PayloadKind::WORD:
      read_word(bytes, opcode_bytes(row.table), out);
      return Status::OK;
    case PayloadKind::TMA:
      return read_tma(bytes, out);
    case PayloadKind::CYC:
      return read_cyc(bytes, out);
    case PayloadKind::CBR:
      out.payload = bytes[2];
      return Status::OK;
    case PayloadKind::PTW:
      return read_ptw(bytes, out);
    case PayloadKind::IP_BIT:
      if (bytes[1] & 0x80) out.flags |= Packet::IP_BIT;
      return Status::OK;
    case PayloadKind::MWAIT:
      read_mwait(bytes, out);
      return Status::OK;
    case PayloadKind::PWRE:
      read_pwre(bytes, out);
      return Status::OK;
    case PayloadKind::PWRX:
      read_pwrx(bytes, out);
      return Status::OK;
    case PayloadKind::BBP:
      read_bbp(bytes, out);
      return Status::OK;
    case PayloadKind::BIP:
      return read_bip(bytes, items_4, out);
    case PayloadKind::CFE:
      read_cfe(bytes, out);
      return Status::OK;
    case PayloadKind::EVD:
      read_evd(bytes, out);
      return Status::OK;
    case PayloadKind::TRIG:
      return read_trig(bytes, out);
  }
  return Status::BAD_PACKET;
}

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
  Status status = read_payload(row, bytes, state_.block_items_4, out);
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
