// Decodes instructions that are newer than the Zydis version in use: FRED, APX (REX2, JMPABS), and the
// lengths of newer vector instructions, so that unknown arithmetic does not end the decode.
#pragma once

#include <array>
#include <string>

#include "code/insn/insn.h"

namespace ptkit::code::insn {

inline constexpr std::size_t kMaxSize = 15;  // bytes, of any instruction

// Decodes an instruction that Zydis rejects. NO_CODE: `code` (at most kMaxSize bytes) ends inside the
// instruction.
[[nodiscard]] base::Status decode_newer(ExecMode mode, base::Bytes code, Insn& out) noexcept;

// An instruction rewritten with REX instead of REX2, for Zydis. Registers above 15 are lost.
struct Rewritten {
  std::array<std::uint8_t, kMaxSize + 1> buffer{};
  std::size_t size = 0;             // used bytes of `buffer`; 0: no such form
  std::size_t shorter_by = 0;       // original size - size
  bool has_high_registers = false;  // names a register above 15
  [[nodiscard]] base::Bytes bytes() const noexcept { return base::Bytes(buffer).first(size); }
};
[[nodiscard]] Rewritten without_rex2(base::Bytes code) noexcept;

// The mnemonic of an instruction that decode_newer() accepts, without operands.
[[nodiscard]] std::string newer_name(ExecMode mode, base::Bytes code);

}  // namespace ptkit::code::insn
