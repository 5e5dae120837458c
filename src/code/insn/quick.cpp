#include "code/insn/quick.h"

#include <algorithm>
#include <cstring>

#include "code/insn/opcode_map.h"

namespace ptkit::code::insn {
namespace {

constexpr std::size_t kLongest = 15;
// With these limits, ModRM, SIB and any displacement that is read are in the first kLongest bytes.
constexpr std::size_t kMostPrefixes = 7;

constexpr std::array<OpMap, 2> kPrimary = {make_primary(false), make_primary(true)};
constexpr OpMap kSecond = make_second();
constexpr OpMap kThird38 = make_third(kThird38Grid, Tail::NONE);
constexpr OpMap kThird3A = make_third(kThird3AGrid, Tail::IMM8);
constexpr std::array<OpMap, 4> kVex = {OpMap{}, make_vex(1), make_vex(2), make_vex(3)};
constexpr std::array<OpMap, 4> kEvex = {OpMap{}, make_evex(1), make_evex(2), make_evex(3)};

// --- prefixes ---

enum PrefixFlag : std::uint8_t {
  PREFIX_66 = 1,
  PREFIX_F3 = 2,
  PREFIX_F2 = 4,
  PREFIX_67 = 8,
  PREFIX_SEGMENT = 16,
};

constexpr std::array<std::uint8_t, 256> make_prefixes() noexcept {
  std::array<std::uint8_t, 256> flags{};
  for (const unsigned byte : {0x26U, 0x2EU, 0x36U, 0x3EU, 0x64U, 0x65U}) flags[byte] = PREFIX_SEGMENT;
  flags[0x66] = PREFIX_66;
  flags[0x67] = PREFIX_67;
  flags[0xF2] = PREFIX_F2;
  flags[0xF3] = PREFIX_F3;
  return flags;
}
constexpr std::array<std::uint8_t, 256> kPrefixes = make_prefixes();

// The bit of a prefix set (opcode_map.h) by flags: a repeat prefix goes before 66.
constexpr std::array<std::uint8_t, 8> kPrefixSet = {kNone, k66, kF3, kF3, kF2, kF2, 0, 0};

// --- sizes ---

constexpr std::uint8_t kSibMayAdd = 0x80;

// Bytes of ModRM, SIB and displacement (manual vol. 2, 2.1.5); kSibMayAdd: four more if the base is 5.
constexpr std::array<std::uint8_t, 256> make_modrm_sizes(bool wide) noexcept {
  std::array<std::uint8_t, 256> sizes{};
  for (unsigned modrm = 0; modrm < 256; ++modrm) {
    const unsigned mod = modrm >> 6;
    const unsigned rm = modrm & 7;
    unsigned size = 1;
    if (mod == 1) size += 1;
    if (wide && mod != 3) {
      if (rm == 4) size += 1;
      if (mod == 2 || (mod == 0 && rm == 5)) size += 4;
      if (mod == 0 && rm == 4) size |= kSibMayAdd;
    } else if (mod == 2 || (mod == 0 && rm == 6)) {
      size += 2;
    }
    sizes[modrm] = static_cast<std::uint8_t>(size);
  }
  return sizes;
}
constexpr std::array<std::uint8_t, 256> kModrmWide = make_modrm_sizes(true);
constexpr std::array<std::uint8_t, 256> kModrmNarrow = make_modrm_sizes(false);

// By operand size: 16, 32, 64 bits. OFFSET depends on the address size instead.
constexpr std::array<std::array<std::uint8_t, 3>, kTails> kTailSizes = {{
    {0, 0, 0},  // NONE
    {1, 1, 1},  // IMM8
    {2, 2, 2},  // IMM16
    {2, 4, 4},  // IMMZ
    {2, 4, 8},  // IMMV
    {0, 0, 0},  // OFFSET
    {3, 3, 3},  // ENTER
    {4, 6, 6},  // FAR_POINTER
    {1, 1, 1},  // REL8
    {2, 4, 4},  // RELZ
}};

// --- decoding ---

// The decoder's position. kLongest bytes are readable.
struct Cursor {
  const std::uint8_t* code = nullptr;
  std::size_t at = 0;
  unsigned prefixes = 0;      // PrefixFlag
  unsigned operand_size = 0;  // index in kTailSizes
  std::uint8_t opcode = 0;
  [[nodiscard]] std::uint8_t byte(std::size_t ahead = 0) const noexcept { return code[at + ahead]; }
};

template <ExecMode kMode>
bool is_wide(const Cursor& cursor) noexcept {
  const bool override_size = (cursor.prefixes & PREFIX_67) != 0;
  return kMode == ExecMode::BITS64 || (kMode == ExecMode::BITS32) != override_size;
}

bool has_source(unsigned vector, unsigned vvvv) noexcept {
  return (vector & VEC_NO_SOURCE) == 0 || vvvv == 15;
}

bool has_size(unsigned vector, unsigned length, bool wide) noexcept {
  const unsigned unwanted =
      (length == 0 ? VEC_NOT_L0 : VEC_NOT_L1) | static_cast<unsigned>(wide ? VEC_NOT_W1 : VEC_NOT_W0);
  return (vector & unwanted) == 0;
}

// The prefix flag of pp in VEX and EVEX: 1 is 66, 2 is F3, 3 is F2.
constexpr std::array<std::uint8_t, 4> kVectorPrefixSet = {kNone, k66, kF3, kF2};

// Decodes a VEX prefix and the opcode after it. Null: not certain. Sets `set` to the prefix set of pp.
const Op* read_vex(Cursor& cursor, unsigned& set) noexcept {
  const bool is_short = cursor.opcode == 0xC5;
  const unsigned map = is_short ? 1 : cursor.byte() & 0x1FU;
  const unsigned last = cursor.byte(is_short ? 0 : 1);  // W or R, vvvv, L, pp
  cursor.at += is_short ? 1 : 2;
  cursor.opcode = cursor.byte();
  ++cursor.at;
  if (map == 0 || map > 3) return nullptr;
  const Op& op = kVex[map][cursor.opcode];
  set = kVectorPrefixSet[last & 3];
  const bool wide = !is_short && (last & 0x80) != 0;
  return has_source(op.vector, last >> 3 & 15) && has_size(op.vector, last >> 2 & 1, wide) ? &op : nullptr;
}

// For an EVEX prefix: R X B R' 0 m m m | W vvvv 1 pp | z L'L b V' aaa.
const Op* read_evex(Cursor& cursor, unsigned& set) noexcept {
  const unsigned first = cursor.byte();
  const unsigned second = cursor.byte(1);
  const unsigned third = cursor.byte(2);
  cursor.opcode = cursor.byte(3);
  cursor.at += 4;
  const unsigned map = first & 15;
  const unsigned length = third >> 5 & 3;
  // z, b, aaa: masking, broadcast, rounding.
  if (map == 0 || map > 3 || (second & 4) == 0 || length == 3 || (third & 0x97) != 0) return nullptr;
  const Op& op = kEvex[map][cursor.opcode];
  set = kVectorPrefixSet[second & 3];
  const bool wide = (second & 0x80) != 0;
  const bool by_prefix = (op.vector & VEC_W_BY_PREFIX) != 0;
  if (by_prefix && wide != ((second & 1) != 0)) return nullptr;
  if ((op.vector & VEC_MASK) != 0 && (first & 0x90) != 0x90) return nullptr;
  const unsigned source = (second >> 3 & 15) | (third & 8) << 1;
  const bool no_source = (op.vector & VEC_NO_SOURCE) == 0 || source == 31;
  return no_source && has_size(op.vector, length, wide) ? &op : nullptr;
}

// The operation of an opcode outside the one-byte map. Null: not certain.
template <ExecMode kMode>
const Op* read_escape(Cursor& cursor, bool has_rex, unsigned& set) noexcept {
  if (cursor.opcode == 0x0F) {
    cursor.opcode = cursor.byte();
    ++cursor.at;
    if (cursor.opcode != 0x38 && cursor.opcode != 0x3A) return &kSecond[cursor.opcode];
    const OpMap& map = cursor.opcode == 0x38 ? kThird38 : kThird3A;
    cursor.opcode = cursor.byte();
    ++cursor.at;
    return &map[cursor.opcode];
  }
  const bool is_evex = cursor.opcode == 0x62;
  const bool is_vex = cursor.opcode == 0xC4 || cursor.opcode == 0xC5;
  if (!is_evex && !is_vex) return nullptr;
  // Outside 64-bit mode, these bytes are LDS, LES and BOUND unless a register form of ModRM follows.
  if (has_rex || (kMode != ExecMode::BITS64 && cursor.byte() < 0xC0)) return nullptr;
  if ((cursor.prefixes & (PREFIX_66 | PREFIX_F3 | PREFIX_F2)) != 0) return nullptr;
  return is_evex ? read_evex(cursor, set) : read_vex(cursor, set);
}

// Reads the prefixes. Returns false if not certain. REX applies only directly before the opcode.
template <ExecMode kMode>
bool read_prefixes(Cursor& cursor, unsigned& rex) noexcept {
  while (const unsigned flag = kPrefixes[cursor.byte()]) {
    cursor.prefixes |= flag;
    if (++cursor.at == kMostPrefixes) return false;
  }
  if constexpr (kMode == ExecMode::BITS64) {
    const bool has_rex = (cursor.byte() & 0xF0) == 0x40;
    rex = has_rex ? cursor.byte() : 0;
    cursor.at += has_rex ? 1 : 0;
  }
  const bool overridden = (cursor.prefixes & PREFIX_66) != 0;
  if (kMode == ExecMode::BITS16) {
    cursor.operand_size = overridden ? 1 : 0;
  } else {
    cursor.operand_size = (rex & 8) != 0 ? 2 : overridden ? 0 : 1;
  }
  return true;
}

void set_indirect(unsigned reg, Insn& out) noexcept {
  // clang-format off
  switch (reg) {
    case 2: out.cls = InsnClass::CALL_INDIRECT; break;
    case 3: out.cls = InsnClass::FAR_CALL; out.kind = InsnKind::CALL_FAR; break;
    case 4: out.cls = InsnClass::JUMP_INDIRECT; break;
    case 5: out.cls = InsnClass::FAR_JUMP; out.kind = InsnKind::JMP_FAR; break;
    default: break;
  }
  // clang-format on
}

// Checks ModRM against the operation's limits and skips ModRM, SIB and displacement.
template <ExecMode kMode>
bool read_modrm(Cursor& cursor, const Op& op, unsigned set) noexcept {
  const unsigned modrm = cursor.byte();
  const bool is_register = modrm >= 0xC0;
  const unsigned sets = is_register ? op.registers : op.memory;
  const unsigned regs = is_register ? op.regs_register : op.regs_memory;
  if ((sets & set) == 0 || (regs >> (modrm >> 3 & 7) & 1) == 0) return false;
  if ((op.flags & OP_X87) != 0 && is_register && (kX87Register[cursor.opcode & 7] >> (modrm & 63) & 1) == 0) {
    return false;
  }
  const unsigned size = is_wide<kMode>(cursor) ? kModrmWide[modrm] : kModrmNarrow[modrm];
  const bool adds = (size & kSibMayAdd) != 0 && (cursor.byte(1) & 7) == 5;
  cursor.at += (size & 15U) + (adds ? 4U : 0U);
  return true;
}

template <ExecMode kMode>
std::size_t tail_size(const Cursor& cursor, const Op& op, unsigned modrm) noexcept {
  if (op.tail == Tail::OFFSET) {
    if (kMode == ExecMode::BITS64) return (cursor.prefixes & PREFIX_67) != 0 ? 4 : 8;
    return is_wide<kMode>(cursor) ? 4 : 2;
  }
  Tail tail = op.tail;
  if ((op.flags & OP_TEST) != 0 && (modrm >> 3 & 7) < 2) {
    tail = (cursor.opcode & 1) != 0 ? Tail::IMMZ : Tail::IMM8;
  }
  // In 64-bit mode, 66 does not change the displacement of near branches.
  const bool is_fixed = kMode == ExecMode::BITS64 && tail == Tail::RELZ;
  return kTailSizes[static_cast<std::size_t>(tail)][is_fixed ? 1 : cursor.operand_size];
}

template <ExecMode kMode>
void set_target(const Cursor& cursor, std::size_t size, Insn& out) noexcept {
  const std::uint8_t* at = cursor.code + cursor.at;
  const std::uint64_t bits = size == 1 ? *at : size == 2 ? base::load_le<2>(at) : base::load_le<4>(at);
  const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
  out.displacement = static_cast<std::int64_t>(bits << unused) >> unused;
  if (kMode != ExecMode::BITS64) out.target_bits = cursor.operand_size == 0 ? 16 : 32;
}

template <ExecMode kMode>
bool decode_at(const std::uint8_t* code, std::size_t have, Insn& out) noexcept {
  Cursor cursor{.code = code};
  unsigned rex = 0;
  if (!read_prefixes<kMode>(cursor, rex)) return false;
  unsigned set = kPrefixSet[cursor.prefixes & 7];
  cursor.opcode = cursor.byte();
  ++cursor.at;
  const Op* op = &kPrimary[kMode == ExecMode::BITS64][cursor.opcode];
  if (op->memory == 0) {
    op = read_escape<kMode>(cursor, rex != 0, set);
    if (op == nullptr) return false;
    // 66 together with F3 or F2 selects no other instruction, but not every instruction allows it.
    const unsigned both = cursor.prefixes & (PREFIX_F3 | PREFIX_F2);
    if (both != 0 && (cursor.prefixes & PREFIX_66) != 0 && (op->memory & op->registers) != kAny) return false;
  }
  const unsigned modrm = cursor.byte();
  if ((op->flags & OP_MODRM) != 0) {
    if (!read_modrm<kMode>(cursor, *op, set)) return false;
  } else if ((op->memory & set) == 0) {
    return false;
  }
  const std::size_t tail = tail_size<kMode>(cursor, *op, modrm);
  const std::size_t size = cursor.at + tail;
  if (size > have) return false;
  out.size = static_cast<std::uint8_t>(size);
  out.cls = op->cls;
  out.kind = op->kind;
  out.rep = (op->flags & OP_STRING) != 0 && (cursor.prefixes & (PREFIX_F3 | PREFIX_F2)) != 0;
  out.target_bits = 64;
  out.displacement = 0;
  out.absolute = 0;
  if ((op->flags & OP_BRANCHES) != 0) set_indirect(modrm >> 3 & 7, out);
  if (op->tail >= Tail::REL8) set_target<kMode>(cursor, tail, out);
  return true;
}

bool decode_in(ExecMode mode, const std::uint8_t* code, std::size_t have, Insn& out) noexcept {
  switch (mode) {
    case ExecMode::BITS64:
      return decode_at<ExecMode::BITS64>(code, have, out);
    case ExecMode::BITS32:
      return decode_at<ExecMode::BITS32>(code, have, out);
    case ExecMode::BITS16:
      return decode_at<ExecMode::BITS16>(code, have, out);
    case ExecMode::UNKNOWN:
      break;
  }
  return false;
}

}  // namespace

bool decode_quick(ExecMode mode, base::Bytes code, Insn& out) noexcept {
  if (code.size() >= kLongest) return decode_in(mode, code.data(), kLongest, out);
  std::array<std::uint8_t, kLongest> padded{};
  if (!code.empty()) std::memcpy(padded.data(), code.data(), code.size());
  return decode_in(mode, padded.data(), code.size(), out);
}

}  // namespace ptkit::code::insn
