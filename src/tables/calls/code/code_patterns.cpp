#include "tables/calls/code/code_patterns.h"

#include <array>
#include <optional>

#include "code/insn/insn.h"

namespace ptkit::tables::calls {
namespace {

using base::Bytes;
using code::insn::Insn;

// Speculation is caught by PAUSE, LFENCE, INT3, UD2, or a jump.
[[nodiscard]] bool is_trap(Bytes code) noexcept {
  return begins_with(code, {0xf3, 0x90}) || begins_with(code, {0x0f, 0xae, 0xe8}) ||
         begins_with(code, {0xcc}) || begins_with(code, {0x0f, 0x0b}) || begins_with(code, {0xeb}) ||
         begins_with(code, {0xe9});
}

// MOV or XCHG of a register, or MOV of a constant, to the address in the stack pointer.
[[nodiscard]] std::size_t overwriting_size(Bytes code) noexcept {
  constexpr std::uint8_t kRex = 0x40;
  constexpr std::uint8_t kNoRegister = 0xc7;  // of ModRM
  constexpr std::uint8_t kBySib = 0x04;
  constexpr std::uint8_t kStackPointer = 0x24;  // SIB
  const bool has_rex = !code.empty() && (code[0] & 0xf0U) == kRex;
  const Bytes rest = has_rex ? code.subspan(1) : code;
  constexpr std::size_t kSize = 3;
  if (rest.size() < kSize || (rest[1] & kNoRegister) != kBySib || rest[2] != kStackPointer) return 0;
  constexpr std::size_t kConstant = 4;
  const std::size_t size = code.size() - rest.size() + kSize;
  if (rest[0] == 0x89 || rest[0] == 0x87) return size;
  return rest[0] == 0xc7 && rest[1] == kBySib ? size + kConstant : 0;
}

// LEA or ADD that drop a return address.
[[nodiscard]] std::size_t dropping_size(Bytes code) noexcept {
  for (const auto& form : {std::initializer_list<std::uint8_t>{0x48, 0x8d, 0x64, 0x24, 0x08},
                           {0x48, 0x83, 0xc4, 0x08},
                           {0x8d, 0x64, 0x24, 0x04},
                           {0x83, 0xc4, 0x04}}) {
    if (begins_with(code, form)) return form.size();
  }
  return 0;
}

// A return, or a jump to a return thunk. LFENCE and a shift of nothing may be before it (LVI).
[[nodiscard]] bool returns(Bytes code) noexcept {
  constexpr std::size_t kShift = 5;
  constexpr std::size_t kFence = 3;
  if (begins_with(code, {0x48, 0xc1, 0x24, 0x24, 0x00})) code = code.subspan(kShift);
  if (begins_with(code, {0x0f, 0xae, 0xe8})) code = code.subspan(kFence);
  if (begins_with(code, {0xf2}) || begins_with(code, {0xf3})) code = code.subspan(1);
  return begins_with(code, {0xc3}) || begins_with(code, {0xc2}) || begins_with(code, {0xe9}) ||
         begins_with(code, {0xeb});
}

[[nodiscard]] bool replaces_return_address(Bytes code) noexcept {
  const std::size_t size = std::max(overwriting_size(code), dropping_size(code));
  return size != 0 && size <= code.size() && returns(code.subspan(size));
}

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

// Operands of MOV and XCHG of 64 bits, and of POP.
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
      // A value that the function has kept itself, as for arrays of variable size, is of its own frame.
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

bool is_retpoline_call(const code::image::CodeView& code, std::uint64_t ip) {
  constexpr std::size_t kCallSize = 5;
  constexpr std::size_t kTrapBytes = 3;
  constexpr std::uint64_t kMostBytesOver = 64;
  constexpr std::size_t kCalleeBytes = 24;
  std::array<std::uint8_t, kCallSize + kTrapBytes> bytes{};
  const Bytes call = Bytes(bytes).first(code.read(ip, bytes));
  if (call.size() < kCallSize || call[0] != 0xe8) return false;
  // Recordings may lack code that was not executed.
  const Bytes next = call.subspan(kCallSize);
  if (!next.empty() && !is_trap(next)) return false;
  code::insn::Insn found;
  if (code::insn::decode(code::insn::ExecMode::BITS64, call, found) != base::Status::OK) return false;
  const auto over = static_cast<std::uint64_t>(found.displacement);
  if (over == 0 || over > kMostBytesOver) return false;
  std::array<std::uint8_t, kCalleeBytes> callee{};
  const std::size_t size = code.read(ip + kCallSize + over, callee);
  return replaces_return_address(Bytes(callee).first(size));
}

FirstBranch first_branch(const code::image::CodeView& code, std::uint64_t ip, unsigned most) {
  constexpr std::size_t kLongestInsn = 15;
  for (unsigned i = 0; i <= most; ++i) {
    std::array<std::uint8_t, kLongestInsn> bytes{};
    const Bytes rest = Bytes(bytes).first(code.read(ip, bytes));
    code::insn::Insn found;
    // Space 64 is right for loads of 32-bit code, too.
    if (code::insn::decode(code::insn::ExecMode::BITS64, rest, found) != base::Status::OK) return {};
    if (found.cls == code::insn::InsnClass::CALL) return {ip, 0};
    if (found.cls == code::insn::InsnClass::JUMP)
      return {ip, code::insn::direct_target(found, code::insn::ExecMode::BITS64, ip)};
    if (found.cls != code::insn::InsnClass::OTHER) return {};
    ip += found.size;
  }
  return {};
}

bool switches_stacks(Bytes code, bool is_function) {
  if (!may_load(code)) return false;
  const StackPointerScan found = scan(code, is_function);
  return found.saves() && found.loads();
}

bool loads_stack_pointer(Bytes code) { return may_load(code) && scan(code, true).loads(); }

}  // namespace ptkit::tables::calls
