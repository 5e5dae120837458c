#include "tables/calls/code/retpoline.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "code/insn/insn.h"
#include "tables/calls/code/code_bytes.h"

namespace ptkit::tables::calls {
namespace {

using base::Bytes;

// What speculation is caught by: PAUSE, LFENCE, INT3, UD2, or a jump.
[[nodiscard]] bool is_trap(Bytes code) noexcept {
  return begins_with(code, {0xf3, 0x90}) || begins_with(code, {0x0f, 0xae, 0xe8}) ||
         begins_with(code, {0xcc}) || begins_with(code, {0x0f, 0x0b}) || begins_with(code, {0xeb}) ||
         begins_with(code, {0xe9});
}

// MOV or XCHG of a register, or MOV of a constant, to where the stack pointer points.
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

}  // namespace ptkit::tables::calls
