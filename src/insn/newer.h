// Instructions that are newer than the Zydis we build with: FRED, APX (REX2, JMPABS), and the lengths of
// newer vector instructions, so that unknown arithmetic does not stop a trace.
#pragma once

#include <array>
#include <string>

#include "insn/insn.h"

namespace ptkit::insn {

inline constexpr std::size_t kMaxSize = 15;  // bytes, of any instruction

// Decodes what Zydis refused. NO_CODE: `code` (at most kMaxSize bytes) ends inside the instruction.
[[nodiscard]] base::Status decode_newer(ExecMode mode, base::Bytes code, Insn& out) noexcept;

// An instruction rewritten with REX in place of REX2: Zydis knows it then. Registers above 15 are lost.
struct Rewritten {
  std::array<std::uint8_t, kMaxSize + 1> buffer{};
  std::size_t size = 0;             // of `buffer` in use; 0: there is no such form
  std::size_t shorter_by = 0;       // bytes that the original is longer
  bool has_high_registers = false;  // names a register above 15
  [[nodiscard]] base::Bytes bytes() const noexcept { return base::Bytes(buffer).first(size); }
};
[[nodiscard]] Rewritten without_rex2(base::Bytes code) noexcept;

// Name (and for JMPABS nothing more) of an instruction that decode_newer() accepts.
[[nodiscard]] std::string newer_name(ExecMode mode, base::Bytes code);

}  // namespace ptkit::insn
