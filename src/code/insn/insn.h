// A decoded x86 instruction with the properties that control flow needs. Only this folder uses Zydis.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::code::insn {

enum class ExecMode : std::uint8_t { UNKNOWN = 0, BITS16 = 16, BITS32 = 32, BITS64 = 64 };

// The effect of an instruction on control flow. Stored in the `cls` column: append only.
enum class InsnClass : std::uint8_t {
#define PT_INSN_CLASS(name, value, text) name = value,
#include "code/insn/kinds.def"
};

// Particular instructions that events bind to.
enum class InsnKind : std::uint8_t {
  OTHER = 0,
  INT,
  INT3,
  INT1,
  INTO,
  SYSCALL,
  SYSENTER,
  SYSRET,
  SYSEXIT,
  IRET,
  UIRET,
  ERETS,
  ERETU,
  RSM,
  VMCALL,
  VMLAUNCH,
  VMRESUME,
  VMPTRLD,
  MOV_CR3,
  WRMSR,
  MWAIT,
  PTWRITE,
  XBEGIN,
  XEND,
  XABORT,
  UD,
  JMPABS,
  CALL_FAR,
  JMP_FAR,
  RET_FAR,
  LOOP,
  JCXZ,
  HLT,
  CLI,
  STI,
  POPF,
};

struct Insn {
  std::uint8_t size = 0;  // bytes, 1..15
  InsnClass cls = InsnClass::OTHER;
  InsnKind kind = InsnKind::OTHER;
  bool rep = false;  // string instruction with a REP, REPE or REPNE prefix
  // Direct branches and XBEGIN: target = ip + size + displacement, truncated to target_bits (16, 32 or 64).
  std::uint8_t target_bits = 64;
  std::int64_t displacement = 0;
  std::uint64_t absolute = 0;  // JMPABS: the target
};

// Decodes one instruction at the start of `code` (pass up to 15 bytes). NO_CODE: `code` ends inside the
// instruction. BAD_INSN: invalid instruction, or the mode is UNKNOWN.
[[nodiscard]] base::Status decode(ExecMode mode, base::Bytes code, Insn& out) noexcept;

// With Zydis only, without the quick decoder (quick.h). Defines the result.
[[nodiscard]] base::Status decode_exactly(ExecMode mode, base::Bytes code, Insn& out) noexcept;

// `ip` is a linear address, `cs_base` is the base of the code segment of 16 and 32-bit code. Effective
// addresses wrap, linear addresses do not. 16-bit code more than 64 KiB above `cs_base` has another, unknown
// segment base: it wraps at 4 GiB.

// The target of a direct branch, XBEGIN or JMPABS at `ip`, wrapped by operand size and mode.
[[nodiscard]] std::uint64_t direct_target(const Insn& insn, ExecMode mode, std::uint64_t ip,
                                          std::uint32_t cs_base = 0) noexcept;

// For the instruction that `code` begins with. nullopt: it is none of these.
[[nodiscard]] std::optional<std::uint64_t> direct_target(ExecMode mode, base::Bytes code, std::uint64_t ip,
                                                         std::uint32_t cs_base = 0) noexcept;

// The next sequential IP, wrapped to the mode's address width.
[[nodiscard]] std::uint64_t next_ip(const Insn& insn, ExecMode mode, std::uint64_t ip,
                                    std::uint32_t cs_base = 0) noexcept;

// The text of one instruction in Intel syntax; "(bad)" if it cannot be decoded.
[[nodiscard]] std::string disassemble(ExecMode mode, base::Bytes code, std::uint64_t ip,
                                      std::uint32_t cs_base = 0);

}  // namespace ptkit::code::insn
