// One decoded x86 instruction, as far as control flow needs it. The only folder that knows Zydis.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::insn {

enum class ExecMode : std::uint8_t { UNKNOWN = 0, BITS16 = 16, BITS32 = 32, BITS64 = 64 };

// What the instruction does to control flow. Stored in the `cls` column: append only.
enum class InsnClass : std::uint8_t {
  OTHER = 0,          // goes on at the next instruction
  COND_JUMP = 1,      // Jcc, JCXZ, LOOPcc: one TNT bit
  JUMP = 2,           // direct near JMP, JMPABS: no packet (JMPABS: TIP)
  JUMP_INDIRECT = 3,  // near, by register or memory: TIP
  CALL = 4,           // direct near CALL: no packet
  CALL_INDIRECT = 5,  // near, by register or memory: TIP
  RETURN = 6,         // near RET: TIP, or a taken TNT bit when compressed
  FAR_CALL = 7,       // CALL far, INT n, INT3, INT1, INTO, SYSCALL, SYSENTER, VMCALL, VMLAUNCH, VMRESUME
  FAR_RETURN = 8,     // RET far, IRET, SYSRET, SYSEXIT, UIRET, ERETS, ERETU, RSM
  FAR_JUMP = 9,       // JMP far
  PTWRITE = 10,       // PTW
};

// Which instruction it is, where events bind to particular ones.
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
  bool rep = false;  // a string instruction with a REP/REPE/REPNE prefix that repeats it
  std::uint8_t target_bits =
      64;  // where displacement counts: the width that the target is cut to (16, 32 or 64)
  std::int64_t displacement =
      0;  // direct branches and XBEGIN: target = ip + size + displacement, cut to target_bits
  std::uint64_t absolute = 0;  // JMPABS: the target
};

// Decodes one instruction from the start of `code` (give up to 15 bytes).
// NO_CODE: `code` ends inside the instruction. BAD_INSN: no valid instruction, or the mode is UNKNOWN.
[[nodiscard]] base::Status decode(ExecMode mode, base::Bytes code, Insn& out) noexcept;

// The same without the quick decoder (quick.h): defines the answer.
[[nodiscard]] base::Status decode_exactly(ExecMode mode, base::Bytes code, Insn& out) noexcept;

// `ip` is a linear address, and `cs_base` the base of the code segment of 16 and 32-bit code: its effective
// addresses wrap, not its linear ones. 16-bit code more than 64 KiB above `cs_base` wraps at 4 GiB: the base
// of its segment is another one, and is not known.

// Target of a direct branch or XBEGIN at `ip`, wrapped as its operand size and the mode demand; JMPABS: its
// target.
[[nodiscard]] std::uint64_t direct_target(const Insn& insn, ExecMode mode, std::uint64_t ip,
                                          std::uint32_t cs_base = 0) noexcept;

// Next sequential IP, wrapped to the mode's address width.
[[nodiscard]] std::uint64_t next_ip(const Insn& insn, ExecMode mode, std::uint64_t ip,
                                    std::uint32_t cs_base = 0) noexcept;

// Intel-syntax text of one instruction, "(bad)" if it cannot be decoded.
[[nodiscard]] std::string disassemble(ExecMode mode, base::Bytes code, std::uint64_t ip,
                                      std::uint32_t cs_base = 0);

}  // namespace ptkit::insn
