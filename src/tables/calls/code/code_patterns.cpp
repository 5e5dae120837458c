#include "tables/calls/code/stack_pointer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "code/insn/insn.h"

namespace ptkit::tables::calls {
namespace {

using base::Bytes;
using code::insn::Insn;

constexpr unsigned kRsp = 4;
constexpr unsigned kRbp = 5;
constexpr std::size_t kMostOperandBytes = 15;

// A register, or an address as an instruction writes it.
struct Operand {
  bool is_register = false;
  std::uint8_t number = 0;  // of the register
  std::uint8_t size = 0;    // of `bytes`
  std::array<std::uint8_t, kMostOperandBytes> bytes{};

  bool operator==(const Operand&) const = default;
};

[[nodiscard]] Operand register_operand(unsigned number) noexcept {
  Operand operand;
  operand.is_register = true;
  operand.number = static_cast<std::uint8_t>(number);
  return operand;
}

// MOV and XCHG of 64 bits, and POP: what an instruction moves.
struct Move {
  Operand to;
  Operand from;
  bool swaps = false;
};

// The operand that ModRM selects besides the register: `rest` begins with ModRM.
[[nodiscard]] Operand operand_of(Bytes rest, std::uint8_t rex, std::uint8_t segment) noexcept {
  constexpr unsigned kRegisterMode = 3;
  const std::uint8_t modrm = rest[0];
  if (modrm >> 6U == kRegisterMode) return register_operand((modrm & 7U) | (rex & 1U) << 3U);
  Operand operand;
  operand.bytes[0] = modrm & 0xc7U;
  operand.bytes[1] = rex & 3U;
  operand.bytes[2] = segment;
  const std::size_t more = std::min(rest.size() - 1, operand.bytes.size() - 3);
  std::copy_n(rest.begin() + 1, more, operand.bytes.begin() + 3);
  operand.size = static_cast<std::uint8_t>(more + 3);
  return operand;
}

[[nodiscard]] std::optional<Move> move_of(Bytes insn) noexcept {
  std::uint8_t segment = 0;
  while (!insn.empty() && (insn[0] == 0x64 || insn[0] == 0x65)) {
    segment = insn[0];
    insn = insn.subspan(1);
  }
  std::uint8_t rex = 0;
  if (!insn.empty() && insn[0] >> 4U == 4) {
    rex = insn[0];
    insn = insn.subspan(1);
  }
  if (insn.empty()) return std::nullopt;
  const bool is_wide = (rex & 8U) != 0;
  const std::uint8_t opcode = insn[0];
  if (opcode == 0x5c && (rex & 1U) == 0) return Move{register_operand(kRsp), Operand{}, false};
  if (opcode == 0x94 && is_wide && (rex & 1U) == 0)
    return Move{register_operand(kRsp), register_operand(0), true};
  if (!is_wide || insn.size() < 2 || (opcode != 0x89 && opcode != 0x8b && opcode != 0x87))
    return std::nullopt;
  const Operand direct = register_operand((insn[1] >> 3U & 7U) | (rex & 4U) << 1U);
  const Operand other = operand_of(insn.subspan(1), rex, segment);
  if (opcode == 0x8b) return Move{direct, other, false};
  return Move{other, direct, opcode == 0x87};
}

// Follows the stack pointer through instructions in the order of their addresses.
class StackPointerScan {
 public:
  void add(Bytes insn) noexcept {
    const std::optional<Move> move = move_of(insn);
    if (!move) return;
    const Operand rsp = register_operand(kRsp);
    if (move->swaps && (move->to == rsp || move->from == rsp)) {
      saves_ = loads_ = true;
    } else if (move->from == rsp) {
      saves_ = true;
      keep(move->to);
    } else if (move->to == rsp) {
      // What the function has kept itself, as for arrays of variable size, is of its own frame.
      loads_ = loads_ || (move->from != register_operand(kRbp) && !is_kept(move->from));
    } else if (is_kept(move->from)) {
      keep(move->to);
    }
  }
  [[nodiscard]] bool saves() const noexcept { return saves_; }
  [[nodiscard]] bool loads() const noexcept { return loads_; }

 private:
  static constexpr std::size_t kMostKept = 8;

  [[nodiscard]] bool is_kept(const Operand& operand) const noexcept {
    const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(size_);
    return std::find(kept_.begin(), end, operand) != end;
  }
  void keep(const Operand& operand) noexcept {
    if (size_ < kMostKept && !is_kept(operand)) kept_[size_++] = operand;
  }

  std::array<Operand, kMostKept> kept_{};  // copies of the stack pointer
  std::size_t size_ = 0;
  bool saves_ = false;
  bool loads_ = false;
};

// Most functions have none of these bytes in a row, so they are not decoded: MOV and XCHG of 64 bits with
// RSP, POP RSP.
[[nodiscard]] bool may_load(Bytes code) noexcept {
  std::uint8_t rex = 0;
  for (std::size_t i = 0; i + 1 < code.size(); rex = code[i++]) {
    const unsigned opcode = code[i];
    const unsigned next = code[i + 1];
    if (opcode == 0x5c && next != 0x24) return true;  // 5C 24 is an address on the stack
    if (rex >> 3U != 9) continue;
    const bool is_direct =
        (next & 0xc7U) == 0xc4 && (rex & 1U) == 0;  // RSP is the operand beside the register
    const bool is_register = (next & 0x38U) == 0x20 && (rex & 4U) == 0;  // RSP is the register
    if ((opcode == 0x89 || opcode == 0x87) && is_direct) return true;
    if ((opcode == 0x8b || opcode == 0x87) && is_register) return true;
    if (opcode == 0x94) return true;
  }
  return false;
}

[[nodiscard]] StackPointerScan scan(Bytes code, bool to_end) noexcept {
  StackPointerScan found;
  Insn insn;
  while (!code.empty() && code::insn::decode(code::insn::ExecMode::BITS64, code, insn) == base::Status::OK) {
    found.add(code.first(insn.size));
    const bool leaves = insn.cls == code::insn::InsnClass::RETURN ||
                        insn.cls == code::insn::InsnClass::JUMP ||
                        insn.cls == code::insn::InsnClass::JUMP_INDIRECT;
    if (leaves && !to_end) break;
    code = code.subspan(insn.size);
  }
  return found;
}

}  // namespace

bool switches_stacks(Bytes code, bool is_function) {
  if (!may_load(code)) return false;
  const StackPointerScan found = scan(code, is_function);
  return found.saves() && found.loads();
}

bool loads_stack_pointer(Bytes code) { return may_load(code) && scan(code, true).loads(); }

}  // namespace ptkit::tables::calls
