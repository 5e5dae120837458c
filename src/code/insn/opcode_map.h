// The opcodes that the quick decoder decodes, by opcode map (manual vol. 2, appendix A). Other opcodes are
// "not certain": Zydis decodes them. Tables are built at compile time from grids of one letter per opcode,
// sixteen per row. Internal to src/code/insn.
#pragma once

#include <array>
#include <string_view>

#include "code/insn/insn.h"

namespace ptkit::code::insn {

// The bytes after opcode, ModRM, SIB and displacement.
enum class Tail : std::uint8_t { NONE, IMM8, IMM16, IMMZ, IMMV, OFFSET, ENTER, FAR_POINTER, REL8, RELZ };
inline constexpr std::size_t kTails = 10;

// Which encodings of an opcode are certain. Prefix sets: bit 0 none of 66, F3 and F2; bit 1 66; bit 2 F3;
// bit 3 F2.
inline constexpr unsigned kNone = 1;
inline constexpr unsigned k66 = 2;
inline constexpr unsigned kF3 = 4;
inline constexpr unsigned kF2 = 8;
inline constexpr unsigned kAny = 15;

enum OpFlag : std::uint8_t {
  OP_MODRM = 1,
  OP_STRING = 2,    // string instruction: F3 and F2 repeat it
  OP_TEST = 4,      // F6 and F7: only /0 and /1 have an immediate
  OP_BRANCHES = 8,  // FF: its group has calls and jumps
  OP_X87 = 16,      // with a register ModRM, see kX87Register
};

// Limits of VEX and EVEX encodings.
enum VectorFlag : std::uint8_t {
  VEC_NO_SOURCE = 1,  // vvvv has to be 1111b
  VEC_NOT_L0 = 2,     // 128-bit form
  VEC_NOT_L1 = 4,     // the longer ones
  VEC_NOT_W0 = 8,
  VEC_NOT_W1 = 16,
  VEC_W_BY_PREFIX = 32,  // EVEX: W is 1 with 66 and F2 and 0 else
  VEC_MASK = 64,         // EVEX: ModRM.reg is a mask register: R and R' have no use
};

struct Op {
  std::uint8_t memory = 0;          // prefix set with a memory operand, or without ModRM
  std::uint8_t registers = 0;       // prefix set with a register operand
  std::uint8_t regs_memory = 0xFF;  // values of ModRM.reg: bit by value
  std::uint8_t regs_register = 0xFF;
  Tail tail = Tail::NONE;
  std::uint8_t flags = 0;   // OpFlag
  std::uint8_t vector = 0;  // VectorFlag
  InsnClass cls = InsnClass::OTHER;
  InsnKind kind = InsnKind::OTHER;
};
using OpMap = std::array<Op, 256>;
using Grid = std::array<std::string_view, 16>;

struct Allowed {
  unsigned memory = 0;
  unsigned registers = 0;
  unsigned vector = 0;
};

constexpr char at(const Grid& grid, unsigned opcode) noexcept { return grid[opcode >> 4][opcode & 15]; }

constexpr void restrict_regs(Op& op, unsigned memory, unsigned registers) noexcept {
  op.regs_memory = static_cast<std::uint8_t>(memory);
  op.regs_register = static_cast<std::uint8_t>(registers);
}

constexpr void set_meaning(OpMap& map, unsigned first, unsigned last, InsnClass cls,
                           InsnKind kind = InsnKind::OTHER) noexcept {
  for (unsigned opcode = first; opcode <= last; ++opcode) {
    map[opcode].cls = cls;
    map[opcode].kind = kind;
  }
}

// --- one byte ---

// See primary_op() for the letters. Any other letter: not certain, or a prefix.
inline constexpr Grid kPrimaryGrid = {
    "mmmmbz--mmmmbz-.", "mmmmbz--mmmmbz--", "mmmmbz.-mmmmbz.-", "mmmmbz.-mmmmbz.-",
    "----------------", "----------------", "--.m....zZbM----", "rrrrrrrrrrrrrrrr",
    "MZMMmmmmmmmmmmmm", "----------f-----", "oooo----bz------", "bbbbbbbbvvvvvvvv",
    "MMw-..MZe-w--b--", "mmmmbb--mmmmmmmm", "rrrrbbbbRRfr----", ".-..--tt------mm",
};
inline constexpr std::array<std::uint8_t, 20> kNotIn64 = {0x06, 0x07, 0x0E, 0x16, 0x17, 0x1E, 0x1F,
                                                          0x27, 0x2F, 0x37, 0x3F, 0x60, 0x61, 0x82,
                                                          0x9A, 0xCE, 0xD4, 0xD5, 0xD6, 0xEA};

constexpr Op primary_op(char letter) noexcept {
  Op op;
  op.memory = op.registers = kAny;
  const auto with = [&op](Tail tail, unsigned flags) {
    op.tail = tail;
    op.flags = static_cast<std::uint8_t>(flags);
    return op;
  };
  switch (letter) {
    // clang-format off
    case 'm': return with(Tail::NONE, OP_MODRM);
    case 'M': return with(Tail::IMM8, OP_MODRM);
    case 'Z': return with(Tail::IMMZ, OP_MODRM);
    case 't': return with(Tail::NONE, OP_MODRM | OP_TEST);
    case '-': return with(Tail::NONE, 0);
    case 'b': return with(Tail::IMM8, 0);
    case 'w': return with(Tail::IMM16, 0);
    case 'z': return with(Tail::IMMZ, 0);
    case 'v': return with(Tail::IMMV, 0);
    case 'o': return with(Tail::OFFSET, 0);
    case 'e': return with(Tail::ENTER, 0);
    case 'f': return with(Tail::FAR_POINTER, 0);
    case 'r': return with(Tail::REL8, 0);
    case 'R': return with(Tail::RELZ, 0);
    default: return {};
      // clang-format on
  }
}

constexpr void set_primary_meanings(OpMap& map) noexcept {
  using C = InsnClass;
  using K = InsnKind;
  set_meaning(map, 0x70, 0x7F, C::COND_JUMP);
  set_meaning(map, 0x9A, 0x9A, C::FAR_CALL, K::CALL_FAR);
  set_meaning(map, 0x9D, 0x9D, C::OTHER, K::POPF);
  set_meaning(map, 0xC2, 0xC3, C::RETURN);
  set_meaning(map, 0xCA, 0xCB, C::FAR_RETURN, K::RET_FAR);
  set_meaning(map, 0xCC, 0xCC, C::FAR_CALL, K::INT3);
  set_meaning(map, 0xCD, 0xCD, C::FAR_CALL, K::INT);
  set_meaning(map, 0xCE, 0xCE, C::FAR_CALL, K::INTO);
  set_meaning(map, 0xCF, 0xCF, C::FAR_RETURN, K::IRET);
  set_meaning(map, 0xE0, 0xE2, C::COND_JUMP, K::LOOP);
  set_meaning(map, 0xE3, 0xE3, C::COND_JUMP, K::JCXZ);
  set_meaning(map, 0xE8, 0xE8, C::CALL);
  set_meaning(map, 0xE9, 0xE9, C::JUMP);
  set_meaning(map, 0xEA, 0xEA, C::FAR_JUMP, K::JMP_FAR);
  set_meaning(map, 0xEB, 0xEB, C::JUMP);
  set_meaning(map, 0xF1, 0xF1, C::FAR_CALL, K::INT1);
  set_meaning(map, 0xF4, 0xF4, C::OTHER, K::HLT);
  set_meaning(map, 0xFA, 0xFA, C::OTHER, K::CLI);
  set_meaning(map, 0xFB, 0xFB, C::OTHER, K::STI);
}

constexpr OpMap make_primary(bool is_64) noexcept {
  OpMap map{};
  for (unsigned opcode = 0; opcode < 256; ++opcode) map[opcode] = primary_op(at(kPrimaryGrid, opcode));
  set_primary_meanings(map);
  restrict_regs(map[0x8C], 0x3F, 0x3F);  // six segment registers
  restrict_regs(map[0x8D], 0xFF, 0x00);  // LEA has no register form
  restrict_regs(map[0x8E], 0x3D, 0x3D);  // MOV cannot load CS
  restrict_regs(map[0x8F], 0x01, 0x01);  // other values are XOP
  restrict_regs(map[0xC6], 0x01, 0x01);  // C6 /7 and C7 /7 are XABORT and XBEGIN
  restrict_regs(map[0xC7], 0x01, 0x01);
  restrict_regs(map[0xD9], 0xFD, 0xFF);
  restrict_regs(map[0xDB], 0xAF, 0xFF);
  restrict_regs(map[0xDD], 0xDF, 0xFF);
  restrict_regs(map[0xFE], 0x03, 0x03);
  restrict_regs(map[0xFF], 0x7F, 0x57);  // far forms have memory operands only
  for (unsigned opcode = 0xD8; opcode <= 0xDF; ++opcode) map[opcode].flags |= OP_X87;
  for (const unsigned first : {0x6CU, 0xA4U, 0xAAU}) {
    for (unsigned opcode = first; opcode < first + (first == 0xAA ? 6 : 4); ++opcode)
      map[opcode].flags |= OP_STRING;
  }
  map[0xFF].flags |= OP_BRANCHES;
  if (!is_64) return map;
  for (const unsigned opcode : kNotIn64) map[opcode] = Op{};
  for (unsigned opcode = 0x40; opcode < 0x50; ++opcode) map[opcode] = Op{};  // REX
  return map;
}

// Register forms of D8 to DF: bit by ModRM - C0.
constexpr std::uint64_t x87_range(unsigned first, unsigned last) noexcept {
  std::uint64_t bits = 0;
  for (unsigned modrm = first; modrm <= last; ++modrm) bits |= std::uint64_t{1} << (modrm - 0xC0);
  return bits;
}
inline constexpr std::array<std::uint64_t, 8> kX87Register = {
    x87_range(0xC0, 0xFF),
    x87_range(0xC0, 0xD0) | x87_range(0xE0, 0xE1) | x87_range(0xE4, 0xE5) | x87_range(0xE8, 0xEE) |
        x87_range(0xF0, 0xFF),
    x87_range(0xC0, 0xDF) | x87_range(0xE9, 0xE9),
    x87_range(0xC0, 0xDF) | x87_range(0xE2, 0xE3) | x87_range(0xE8, 0xF7),
    x87_range(0xC0, 0xFF),
    x87_range(0xC0, 0xC7) | x87_range(0xD0, 0xEF),
    x87_range(0xC0, 0xCF) | x87_range(0xD9, 0xD9) | x87_range(0xE0, 0xFF),
    x87_range(0xE0, 0xE0) | x87_range(0xE8, 0xF7),
};

// --- 0F, 0F 38, 0F 3A ---

// The prefix sets with which an opcode is an instruction, for memory and for register operands. Any other
// letter: not certain.
constexpr Allowed legacy_allowed(char letter) noexcept {
  switch (letter) {
    // clang-format off
    case 'a': return {kAny, kAny};
    case 'A': return {kAny, 0};
    case 'p': return {kNone | k66, kNone | k66};
    case 'P': return {kNone | k66, 0};
    case 'R': return {0, kNone | k66};
    case 'r': return {0, k66};
    case 'd': return {k66, k66};
    case 'D': return {k66, 0};
    case 'f': return {kNone | kF3, kNone | kF3};
    case 'F': return {kF3, kF3};
    case 'u': return {k66 | kF2, k66 | kF2};
    case 'v': return {k66 | kF3 | kF2, k66 | kF3 | kF2};
    case 't': return {kNone | k66 | kF3, kNone | k66 | kF3};
    case 'n': return {kNone, kNone};
    case 'N': return {kNone, 0};
    case 'l': return {kAny, kNone | kF3 | kF2};
    case 'h': return {kNone | k66 | kF3, kNone | kF3};
    default: return {};
      // clang-format on
  }
}

inline constexpr Grid kSecondGrid = {
    "..aa.aaaaa.a.a..", "aalPpphPaa..aaaa", "........ppaAaapp", "aaaaaa..........",
    "aaaaaaaaaaaaaaaa", "Raffppppaaataaaa", "ppppppppppppddpt", "aRRrpppn....uutt",
    "aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaa", "aaaaaa..aaaaaana", "aaAaAAaaFaaaaaaa",
    "aaaNpRpAaaaaaaaa", "upppppdRpppppppp", "ppppppvPpppppppp", ".ppppppRppppppp.",
};
// The forms of two-byte opcodes: without ModRM, with an 8-bit immediate after ModRM, or with a displacement.
inline constexpr Grid kSecondShapeGrid = {
    "mmmmm-----m-mmmm", "mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm", "------mmmmmmmmmm",
    "mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm", "MMMMmmm-mmmmmmmm",
    "RRRRRRRRRRRRRRRR", "mmmmmmmmmmmmmmmm", "---mMmmm---mMmmm", "mmmmmmmmmmMmmmmm",
    "mmMmMMMm--------", "mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm", "mmmmmmmmmmmmmmmm",
};
inline constexpr Grid kThird38Grid = {
    "pppppppppppp....", "d...dd.d....ppp.", "dddddd..ddDd....", "dddddd.ddddddddd",
    "dd..............", "................", "................", "................",
    "................", "................", "................", "................",
    "........nnnnnn.d", "...........ddddd", "................", "PP..............",
};
inline constexpr Grid kThird3AGrid = {
    "........dddddddp", "....dddd........", "ddd.............", "................",
    "ddd.d...........", "................", "dddd............", "................",
    "................", "................", "................", "................",
    "............n.dd", "...............d", "................", "................",
};

constexpr void set_allowed(Op& op, const Allowed& allowed) noexcept {
  op.memory = static_cast<std::uint8_t>(allowed.memory);
  op.registers = static_cast<std::uint8_t>(allowed.registers);
  op.vector = static_cast<std::uint8_t>(allowed.vector);
}

constexpr void set_second_meanings(OpMap& map) noexcept {
  using C = InsnClass;
  using K = InsnKind;
  set_meaning(map, 0x05, 0x05, C::FAR_CALL, K::SYSCALL);
  set_meaning(map, 0x07, 0x07, C::FAR_RETURN, K::SYSRET);
  set_meaning(map, 0x0B, 0x0B, C::OTHER, K::UD);
  set_meaning(map, 0x30, 0x30, C::OTHER, K::WRMSR);
  set_meaning(map, 0x34, 0x34, C::FAR_CALL, K::SYSENTER);
  set_meaning(map, 0x35, 0x35, C::FAR_RETURN, K::SYSEXIT);
  set_meaning(map, 0x80, 0x8F, C::COND_JUMP);
  set_meaning(map, 0xAA, 0xAA, C::FAR_RETURN, K::RSM);
  set_meaning(map, 0xB9, 0xB9, C::OTHER, K::UD);
}

constexpr OpMap make_second() noexcept {
  OpMap map{};
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    map[opcode] = primary_op(at(kSecondShapeGrid, opcode));
    set_allowed(map[opcode], legacy_allowed(at(kSecondGrid, opcode)));
  }
  set_second_meanings(map);
  restrict_regs(map[0x71], 0x00, 0x54);  // shifts of words, doublewords and quadwords by an immediate
  restrict_regs(map[0x72], 0x00, 0x54);
  restrict_regs(map[0x73], 0x00, 0xCC);
  restrict_regs(map[0xAE], 0xFF, 0xE0);  // FXSAVE, XSAVE, ...; fences
  restrict_regs(map[0xBA], 0xF0, 0xF0);  // BT, BTS, BTR, BTC
  restrict_regs(map[0xC7], 0x02, 0x00);  // CMPXCHG8B
  return map;
}

constexpr OpMap make_third(const Grid& grid, Tail tail) noexcept {
  OpMap map{};
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    map[opcode].flags = OP_MODRM;
    map[opcode].tail = tail;
    set_allowed(map[opcode], legacy_allowed(at(grid, opcode)));
  }
  return map;
}

// --- VEX ---

// Capitals have a second source in vvvv.
constexpr Allowed vex_allowed(char letter) noexcept {
  constexpr unsigned kPs = kNone | k66;
  constexpr unsigned kScalar = kF3 | kF2;
  constexpr unsigned kMove = VEC_NO_SOURCE;
  constexpr unsigned k256W0 = VEC_NOT_L0 | VEC_NOT_W1;
  switch (letter) {
    // clang-format off
    case 'A': return {kAny, kAny, 0};
    case 'P': return {kPs, kPs, 0};
    case 'D': return {k66, k66, 0};
    case 'X': return {k66, k66, VEC_NOT_L1};
    case 'W': return {k66, k66, VEC_NOT_W1};
    case 'L': return {k66, k66, k256W0};
    case 'N': return {k66, 0, 0};
    case 'S': return {kScalar, kScalar, 0};
    case 'U': return {k66 | kF2, k66 | kF2, 0};
    case 'R': return {0, k66, 0};
    case 'Y': return {kPs, 0, VEC_NOT_L1};
    case 'B': return {kNone, kNone, VEC_NOT_L1};
    case 'C': return {kNone | kScalar, kNone | kScalar, VEC_NOT_L1};
    case 'F': return {kAny, kAny, VEC_NOT_L1};
    case 'G': return {kF2, kF2, VEC_NOT_L1};
    case 'e': return {kAny, kAny, kMove};
    case 'p': return {kPs, kPs, kMove};
    case 'd': return {k66, k66, kMove};
    case 'x': return {k66, k66, kMove | VEC_NOT_L1};
    case 'w': return {k66, k66, kMove | VEC_NOT_W1};
    case 'l': return {k66, k66, kMove | k256W0};
    case 'b': return {k66, 0, kMove | k256W0};
    case 'n': return {k66, 0, kMove};
    case 's': return {kScalar, kScalar, kMove};
    case 'y': return {kPs, 0, kMove | VEC_NOT_L1};
    case 'g': return {kF2, kF2, kMove | VEC_NOT_L1};
    case 'f': return {kNone | kF3, kNone | kF3, kMove};
    case 'h': return {k66 | kF3, k66 | kF3, kMove};
    case 'k': return {k66 | kF3, k66 | kF3, kMove | VEC_NOT_L1};
    case 'i': return {kPs | kF3, kPs | kF3, kMove};
    case 'q': return {k66 | kScalar, k66 | kScalar, kMove};
    case 'r': return {0, kPs, kMove};
    case 'o': return {0, k66, kMove};
    case 'v': return {0, k66, kMove | VEC_NOT_L1};
    case 'm': return {kPs, 0, kMove};
    case 't': return {k66, k66, kMove | VEC_NOT_L0 | VEC_NOT_W0};
    case 'z': return {kNone, 0, kMove};
    default: return {};
      // clang-format on
  }
}

inline constexpr Grid kVex0FGrid = {
    "................", "ee.yPP.y........", "........ppSmsspp", "................",
    "................", "reffPPPPAAeiAAAA", "DDDDDDDDDDDDDDxh", "qRRRDDDz....UUkh",
    "................", "................", "................", "................",
    "..A.XvP.........", "UDDDDDxoDDDDDDDD", "DDDDDDqnDDDDDDDD", ".DDDDDD.DDDDDDD.",
};
inline constexpr Grid kVex38Grid = {
    "DDDDDDDDDDDDWWww", "...w..Ldwlb.ddd.", "dddddd..DDnD....", "ddddddLDDDDDDDDD",
    "Dx...DWD........", "........wwb.....", "................", "........ww......",
    "............N.N.", "......DDDDDDDDDD", "......DDDDDDDDDD", "......DDDDDDDDDD",
    "................", "...........xDDDD", "................", "..BB.CGF........",
};
inline constexpr Grid kVex3AGrid = {
    "ttW.wwL.ddDDDDDD", "....xxxxLl...w..", "XXX.............", "........Ll......",
    "DXD.D.L...WWW...", "................", "xxxx............", "................",
    "................", "................", "................", "................",
    "................", "...............x", "................", "g...............",
};

constexpr OpMap make_vector(const Grid& grid, Allowed (*allowed)(char), unsigned map_number) noexcept {
  OpMap map{};
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    Op& op = map[opcode];
    set_allowed(op, allowed(at(grid, opcode)));
    op.flags = OP_MODRM;
    const bool has_immediate = map_number == 3 || (map_number == 1 && at(kSecondShapeGrid, opcode) == 'M');
    op.tail = has_immediate ? Tail::IMM8 : Tail::NONE;
  }
  return map;
}

constexpr OpMap make_vex(unsigned map_number) noexcept {
  const Grid& grid = map_number == 1 ? kVex0FGrid : map_number == 2 ? kVex38Grid : kVex3AGrid;
  OpMap map = make_vector(grid, vex_allowed, map_number);
  if (map_number == 1) {
    map[0x77].flags = 0;  // VZEROUPPER, VZEROALL
    for (const unsigned opcode : {0x71U, 0x72U}) restrict_regs(map[opcode], 0x00, 0x54);
    restrict_regs(map[0x73], 0x00, 0xCC);
  }
  if (map_number == 2) restrict_regs(map[0xF3], 0x0E, 0x0E);  // BLSR, BLSMSK, BLSI
  return map;
}

// --- EVEX ---

// Without masking, broadcast and rounding. Capitals and digits have a second source in vvvv.
constexpr Allowed evex_allowed(char letter) noexcept {
  constexpr unsigned kPs = kNone | k66;
  constexpr unsigned kMove = VEC_NO_SOURCE;
  switch (letter) {
    // clang-format off
    case 'A': return {kAny, kAny, VEC_W_BY_PREFIX};
    case 'P': return {kPs, kPs, VEC_W_BY_PREFIX};
    case 'D': return {k66, k66, 0};
    case '0': return {k66, k66, VEC_NOT_W1};
    case '1': return {k66, k66, VEC_NOT_W0};
    case 'K': return {k66, k66, VEC_MASK};
    case '2': return {k66, k66, VEC_MASK | VEC_NOT_W1};
    case 'e': return {kAny, kAny, kMove | VEC_W_BY_PREFIX};
    case 'p': return {kPs, kPs, kMove | VEC_W_BY_PREFIX};
    case 'd': return {k66, k66, kMove};
    case 'i': return {k66, k66, kMove | VEC_NOT_W1};
    case 'o': return {k66, k66, kMove | VEC_NOT_W0};
    case 'q': return {k66 | kF3 | kF2, k66 | kF3 | kF2, kMove};
    case 'x': return {k66, k66, kMove | VEC_NOT_L1};
    case 'r': return {0, k66, kMove | VEC_NOT_W1};
    case 's': return {0, k66, kMove};
    default: return {};
      // clang-format on
  }
}

inline constexpr Grid kEvex0FGrid = {
    "................", "ee..PP..........", "........pp....pp", "................",
    "................", ".e..PPPPAAe.AAAA", "DD0DKK2DDD0011xq", "....KK2.......xq",
    "................", "................", "................", "................",
    "......P.........", ".D011D..DDDDDDDD", "DDDDDD..DDDDDDDD", ".D011DD.DD01DD0.",
};
inline constexpr Grid kEvex38Grid = {
    "D...D......D....", "........i...ddio", "dddddi..1.......", "dddddi..DDDDDDDD",
    "D...............", "........id......", "................", ".....DDDiirrsDDD",
    "................", "......DDDDDDDDDD", "......DDDDDDDDDD", "......DDDDDDDDDD",
    "................", "................", "................", "................",
};
inline constexpr Grid kEvex3AGrid = {
    "...D...........D", "....xxxx......KK", ".....D..........", "..............KK",
    "................", "................", "................", "................",
    "................", "................", "................", "................",
    "................", "................", "................", "................",
};

constexpr OpMap make_evex(unsigned map_number) noexcept {
  const Grid& grid = map_number == 1 ? kEvex0FGrid : map_number == 2 ? kEvex38Grid : kEvex3AGrid;
  return make_vector(grid, evex_allowed, map_number);
}

}  // namespace ptkit::code::insn
