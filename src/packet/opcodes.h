// The rows of packets.def as constants, and the opcode tables, built at compile time.
#pragma once

#include <array>

#include "packet/packet.h"

namespace ptkit::packet {

enum class OpcodeTable : std::uint8_t { FIRST, BLOCK, AFTER_02, AFTER_02_C3, AFTER_99, NONE };
inline constexpr std::size_t kOpcodeTables = 5;  // without NONE

enum class Claim : std::uint8_t { OWNS, YIELDS };
enum class SizeRule : std::uint8_t { FIXED, RUN, IP_BYTES, PAYLOAD_BYTES, CONTINUED, ITEM, ICNT_BIT };
enum class PayloadKind : std::uint8_t {
#define PT_PAYLOAD(kind) kind,
#include "packet/packets.def"
};
enum class BlockEffect : std::uint8_t { OPENS, KEEPS, CLOSES };
enum class BulkCheck : std::uint8_t { HOT, PLAIN, PATTERN, STOP_BIT, ZERO_BITS, PAYLOAD_BYTES, DECODER };

struct PacketRow {
  PacketKind kind;
  OpcodeTable table;
  std::uint8_t mask;
  std::uint8_t match;
  Claim claim;
  std::uint8_t least;
  SizeRule size;
  PayloadKind payload;
  BlockEffect block;
  BulkCheck bulk;
};

struct EscapeRow {
  OpcodeTable table;
  std::uint8_t byte;
  OpcodeTable next;
};

inline constexpr std::array<PacketRow, kPacketKinds> kPacketRows{{
#define PT_PACKET(kind, name, table, mask, match, claim, least, size, payload, block, psb, ovf, bulk, ...) \
  {PacketKind::kind,     OpcodeTable::table, mask,           match, Claim::claim, least, SizeRule::size,   \
   PayloadKind::payload, BlockEffect::block, BulkCheck::bulk},
#include "packet/packets.def"
}};

inline constexpr auto kEscapeRows = std::to_array<EscapeRow>({
#define PT_ESCAPE(table, byte, next) {OpcodeTable::table, byte, OpcodeTable::next},
#include "packet/packets.def"
});

[[nodiscard]] constexpr const PacketRow& row_of(PacketKind kind) noexcept {
  return kPacketRows[static_cast<std::size_t>(kind)];
}

// An entry of a table: a PacketKind, kEscape + next table, or kUnclaimed.
using OpcodeEntry = std::uint8_t;
inline constexpr OpcodeEntry kUnclaimed = 0xff;
inline constexpr OpcodeEntry kEscape = 0xf0;
static_assert(kPacketKinds < kEscape);

using OpcodeTables = std::array<std::array<OpcodeEntry, 256>, kOpcodeTables>;

// Not constexpr: a call at compile time is an error, and the compiler's message has this name.
void two_packets_claim_one_opcode();
void an_escape_hits_a_claimed_opcode();
void a_row_claims_no_opcode();

namespace detail {

consteval void put_packet(std::array<OpcodeEntry, 256>& table, const PacketRow& row) {
  bool claimed = false;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if ((byte & row.mask) != row.match) continue;
    OpcodeEntry& entry = table[byte];
    if (entry != kUnclaimed && row.claim == Claim::OWNS) two_packets_claim_one_opcode();
    if (entry != kUnclaimed) continue;
    entry = static_cast<OpcodeEntry>(row.kind);
    claimed = true;
  }
  if (!claimed) a_row_claims_no_opcode();
}

template <std::size_t Rows, std::size_t Escapes>
consteval OpcodeTables build_tables(const std::array<PacketRow, Rows>& rows,
                                    const std::array<EscapeRow, Escapes>& escapes) {
  OpcodeTables tables{};
  for (auto& table : tables) table.fill(kUnclaimed);
  for (const EscapeRow& escape : escapes) {
    OpcodeEntry& entry = tables[static_cast<std::size_t>(escape.table)][escape.byte];
    if (entry != kUnclaimed) an_escape_hits_a_claimed_opcode();
    entry = static_cast<OpcodeEntry>(kEscape + static_cast<unsigned>(escape.next));
  }
  for (const Claim turn : {Claim::OWNS, Claim::YIELDS}) {
    for (const PacketRow& row : rows) {
      if (row.claim != turn || row.table == OpcodeTable::NONE) continue;
      put_packet(tables[static_cast<std::size_t>(row.table)], row);
    }
  }
  // While a block is open, the opcodes of its items take precedence; all others are the same.
  auto& block = tables[static_cast<std::size_t>(OpcodeTable::BLOCK)];
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (block[byte] == kUnclaimed) block[byte] = tables[static_cast<std::size_t>(OpcodeTable::FIRST)][byte];
  }
  return tables;
}

consteval bool rows_are_in_order() {
  for (std::size_t index = 0; index < kPacketRows.size(); ++index) {
    if (static_cast<std::size_t>(kPacketRows[index].kind) != index) return false;
  }
  return true;
}

consteval std::size_t count_unclaimed(const OpcodeTables& tables, OpcodeTable table) {
  std::size_t count = 0;
  for (const OpcodeEntry entry : tables[static_cast<std::size_t>(table)]) count += entry == kUnclaimed;
  return count;
}

}  // namespace detail

inline constexpr OpcodeTables kOpcodes = detail::build_tables(kPacketRows, kEscapeRows);

static_assert(detail::rows_are_in_order());
// Coverage of the first byte: xxx00101, xxx01001 and xxx10101 are reserved, and of xxx11001 all but TSC, MTC,
// MODE and TRIG.
static_assert(detail::count_unclaimed(kOpcodes, OpcodeTable::FIRST) == 3 * 8 + 4);
static_assert(detail::count_unclaimed(kOpcodes, OpcodeTable::BLOCK) == 3 * 8 + 4);
static_assert(detail::count_unclaimed(kOpcodes, OpcodeTable::AFTER_99) == 256 - 2 * 32);

[[nodiscard]] constexpr OpcodeEntry opcode_entry(OpcodeTable table, std::uint8_t byte) noexcept {
  return kOpcodes[static_cast<std::size_t>(table)][byte];
}

// Number of opcode bytes of a packet: 1, 2 or 3. MODE's leaf is in its payload byte.
[[nodiscard]] constexpr std::size_t opcode_bytes(OpcodeTable table) noexcept {
  switch (table) {
    case OpcodeTable::AFTER_02:
      return 2;
    case OpcodeTable::AFTER_02_C3:
      return 3;
    default:
      return 1;
  }
}

}  // namespace ptkit::packet
