// Packet tables of the bulk kernels, built from packets.def at compile time. Private to this folder.
#pragma once

#include <array>
#include <bit>

#include "packet/opcodes.h"

namespace ptkit::packet::scan {

// Frequent packets by bit: the first byte alone determines their handling. All others are "special".
inline constexpr auto kHot = [] {
  std::array<PacketKind, 8> kinds{};
  std::size_t next = 0;
  for (const PacketRow& row : kPacketRows) {
    if (row.bulk == BulkCheck::HOT) kinds[next++] = row.kind;
  }
  return kinds;
}();

[[nodiscard]] constexpr std::uint8_t hot_bit(PacketKind kind) noexcept {
  for (unsigned i = 0; i < kHot.size(); ++i) {
    if (kHot[i] == kind) return static_cast<std::uint8_t>(1u << i);
  }
  return 0;
}

// Number of IP bytes by the IPBytes field; 0xff: reserved.
inline constexpr std::uint8_t kIpBytes[8] = {0, 2, 4, 6, 6, 0xff, 8, 0xff};
// True for IPs that do not depend on the last IP.
[[nodiscard]] constexpr bool is_whole_ip(unsigned ip_bytes) noexcept {
  return ip_bytes == 3 || ip_bytes == 6;
}

// Perfect hash from the second byte of an extended packet to a slot. It is linear over GF(2) (one
// gf2p8affine): row i of the matrix computes bit i. No two valid bytes have the same slot.
inline constexpr std::uint8_t kSlotRows[6] = {66, 31, 127, 195, 116, 121};
[[nodiscard]] constexpr std::uint8_t slot_of(std::uint8_t second) noexcept {
  unsigned slot = 0;
  for (unsigned i = 0; i < 6; ++i) {
    slot |= static_cast<unsigned>(std::popcount(static_cast<unsigned>(kSlotRows[i] & second)) & 1) << i;
  }
  return static_cast<std::uint8_t>(slot);
}
inline constexpr auto kSlots = [] {
  std::array<std::uint8_t, 256> slots{};
  for (unsigned byte = 0; byte < 256; ++byte) slots[byte] = slot_of(static_cast<std::uint8_t>(byte));
  return slots;
}();
inline constexpr std::uint64_t kSlotMatrix = [] {
  std::uint64_t matrix = 0;
  for (unsigned i = 0; i < 6; ++i) matrix |= std::uint64_t{kSlotRows[i]} << (8 * (7 - i));
  return matrix;
}();

// Indexed by the upper six bits of a first byte: even_* for even bytes, odd_* for bytes with low bits 01.
struct Tables {
  std::array<std::uint8_t, 64> odd_length{};  // length; for special packets that of their shortest form
  std::array<std::uint8_t, 64> odd_hot{};     // hot_bit()
  std::array<std::uint8_t, 64> even_hot{};    // PAD or TNT; 00 and 02 have the same index
  std::array<std::uint8_t, 64> even_bits{};   // number of bits of a TNT
  // 0x80: neither the last IP nor DecoderState::in_psb depends on earlier packets after this one
  std::array<std::uint8_t, 64> odd_renews{};
  std::array<std::uint8_t, 64> slot_length{};  // by slot_of(second byte) after 02
};

// Tables for rows by first byte, indexed as Tables. A PSB has the code kPsbCode here: after it the last IP is
// zero.
inline constexpr std::uint8_t kPsbCode = 0x05;  // a reserved opcode
static_assert(opcode_entry(OpcodeTable::FIRST, kPsbCode) == kUnclaimed);
inline constexpr std::uint8_t kSignExtended = 1;

struct RowTables {
  std::array<std::uint8_t, 64> odd_kind{};
  std::array<std::uint8_t, 64> odd_flags{};
  std::array<std::uint8_t, 64> odd_bytes{};  // bytes of the raw payload after the first byte
  std::array<std::uint8_t, 64> odd_new{};    // low bits of the last IP that are replaced, and kSignExtended
  std::array<std::uint8_t, 64> odd_payload2{};
  std::array<std::uint8_t, 64> even_kind{};
  std::array<std::uint8_t, 128> tnt_payload{};  // by the upper seven bits
};

namespace detail {

// Not constexpr: a call at compile time is an error.
void two_second_bytes_share_a_slot();

consteval std::uint8_t extended_length(std::uint8_t second) {
  OpcodeEntry entry = opcode_entry(OpcodeTable::AFTER_02, second);
  if (entry == kEscape + static_cast<unsigned>(OpcodeTable::AFTER_02_C3)) {
    entry = static_cast<OpcodeEntry>(PacketKind::MNT);  // the only opcode there
  }
  if (entry >= kEscape) return 0;
  const PacketRow& row = row_of(static_cast<PacketKind>(entry));
  return row.size == SizeRule::PAYLOAD_BYTES && (second >> 5 & 3) == 1 ? 10 : row.least;
}

consteval Tables build() {
  Tables tables;
  for (unsigned i = 0; i < 64; ++i) {
    const auto byte = static_cast<std::uint8_t>(i << 2 | 1);
    const OpcodeEntry entry = opcode_entry(OpcodeTable::FIRST, byte);
    tables.even_hot[i] = hot_bit(i == 0 ? PacketKind::PAD : PacketKind::TNT_8);
    tables.even_bits[i] = static_cast<std::uint8_t>(std::bit_width(i));
    tables.odd_length[i] = 1;
    if (entry >= kEscape) {
      if (entry != kUnclaimed) tables.odd_length[i] = row_of(PacketKind::MODE_EXEC).least;
      continue;
    }
    const auto kind = static_cast<PacketKind>(entry);
    tables.odd_length[i] = row_of(kind).least;
    if (has_ip_payload(kind)) {
      const unsigned field = byte >> 5;
      if (kIpBytes[field] == 0xff) continue;
      tables.odd_length[i] = static_cast<std::uint8_t>(1 + kIpBytes[field]);
      tables.odd_renews[i] = is_whole_ip(field) && !continues_psb(kind) ? 0x80 : 0;
    }
    tables.odd_hot[i] = hot_bit(kind);
  }
  tables.slot_length.fill(1);
  std::array<bool, 64> taken{};
  for (unsigned second = 0; second < 256; ++second) {
    const std::uint8_t length = extended_length(static_cast<std::uint8_t>(second));
    if (length == 0) continue;
    const std::uint8_t slot = slot_of(static_cast<std::uint8_t>(second));
    // PTW with a reserved PayloadBytes field is no packet: it may share a slot.
    if ((second & 0x1f) == 0x12 && (second & 0x40) != 0) continue;
    if (taken[slot]) two_second_bytes_share_a_slot();
    taken[slot] = true;
    tables.slot_length[slot] = length;
  }
  return tables;
}

consteval RowTables build_rows() {
  RowTables tables;
  for (unsigned i = 0; i < 64; ++i) {
    const auto byte = static_cast<std::uint8_t>(i << 2 | 1);
    const OpcodeEntry entry = opcode_entry(OpcodeTable::FIRST, byte);
    tables.even_kind[i] = static_cast<std::uint8_t>(i == 0 ? PacketKind::PAD : PacketKind::TNT_8);
    if (byte == kPsbCode) tables.odd_new[i] = 64;
    if (entry >= kEscape) continue;
    const auto kind = static_cast<PacketKind>(entry);
    tables.odd_kind[i] = entry;
    if (kind == PacketKind::MTC) tables.odd_bytes[i] = 1;
    const unsigned field = byte >> 5;
    if (!has_ip_payload(kind) || kIpBytes[field] == 0xff) continue;
    tables.odd_payload2[i] = static_cast<std::uint8_t>(field);
    tables.odd_bytes[i] = kIpBytes[field];
    if (field == 0) continue;
    tables.odd_flags[i] = Packet::IP_KNOWN;
    tables.odd_new[i] = is_whole_ip(field) ? 64 : static_cast<std::uint8_t>(8 * kIpBytes[field]);
    if (field == 3) tables.odd_new[i] |= kSignExtended;
  }
  for (unsigned i = 2; i < 128; ++i) {  // the bits below the highest one, oldest first
    const auto count = static_cast<unsigned>(std::bit_width(i)) - 1;
    for (unsigned bit = 0; bit < count; ++bit) {
      tables.tnt_payload[i] |= static_cast<std::uint8_t>((i >> bit & 1) << (count - 1 - bit));
    }
  }
  return tables;
}

}  // namespace detail

alignas(64) inline constexpr RowTables kRowTables = detail::build_rows();
alignas(64) inline constexpr Tables kTables = detail::build();

// True if this is a valid special packet with the length of the tables. Packets that open a block, or have
// another length, are not. `at` has 16 readable bytes.
[[nodiscard]] inline bool is_plain_special(const std::uint8_t* at, PacketKind& kind) noexcept {
  OpcodeEntry entry = opcode_entry(OpcodeTable::FIRST, at[0]);
  for (unsigned i = 1; entry >= kEscape && entry != kUnclaimed; ++i) {
    entry = opcode_entry(static_cast<OpcodeTable>(entry - kEscape), at[i]);
  }
  if (entry == kUnclaimed) return false;
  kind = static_cast<PacketKind>(entry);
  constexpr std::uint64_t kHalf = 0x8202820282028202;
  switch (row_of(kind).bulk) {
    case BulkCheck::PLAIN:
      return true;
    case BulkCheck::PATTERN:
      return base::load_le<8>(at) == kHalf && base::load_le<8>(at + 8) == kHalf;
    case BulkCheck::STOP_BIT:
      return base::load_le<6>(at + 2) > 1;
    case BulkCheck::ZERO_BITS:
      return at[4] == 0 && (at[6] & 0xfe) == 0;
    case BulkCheck::PAYLOAD_BYTES:
      return (at[1] & 0x40) == 0;
    case BulkCheck::HOT:  // an IP packet with a reserved IPBytes field, a long CYC, or one that an erratum
                          // damaged
    case BulkCheck::DECODER:
      return false;
  }
  return false;
}

// Length of a special packet.
[[nodiscard]] inline unsigned special_length(const std::uint8_t* at) noexcept {
  return at[0] == 0x02 ? kTables.slot_length[kSlots[at[1]]] : kTables.odd_length[at[0] >> 2];
}

}  // namespace ptkit::packet::scan
