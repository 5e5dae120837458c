#include "code/insn/classify.h"

#include <array>

namespace ptkit::code::insn {
namespace {

constexpr std::uint8_t kOperandSizePrefix = 0x66;
constexpr std::uint8_t kRepnePrefix = 0xF2;
constexpr std::uint8_t kRepPrefix = 0xF3;

struct Meaning {
  InsnClass cls = InsnClass::OTHER;
  InsnKind kind = InsnKind::OTHER;
};

bool has_prefix(const ZydisDecodedInstruction& raw, std::uint8_t value) noexcept {
  for (unsigned i = 0; i < raw.raw.prefix_count; ++i) {
    if (raw.raw.prefixes[i].value == value) return true;
  }
  return false;
}

// INS OUTS MOVS CMPS STOS LODS SCAS: the string instructions that F2 and F3 repeat. Compared by opcode, as
// MOVSD and CMPSD are also SSE instructions with F2 in their opcode.
bool is_string_instruction(const ZydisDecodedInstruction& raw) noexcept {
  if (raw.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT) return false;
  const unsigned opcode = raw.opcode;
  return (opcode >= 0x6C && opcode <= 0x6F) || (opcode >= 0xA4 && opcode <= 0xA7) ||
         (opcode >= 0xAA && opcode <= 0xAF);
}

// CALL and JMP have one mnemonic for near, far, direct and indirect forms.
Meaning call_meaning(const ZydisDecodedInstruction& raw) noexcept {
  if (raw.opcode == 0xE8) return {InsnClass::CALL, InsnKind::OTHER};
  if (raw.opcode == 0xFF && raw.raw.modrm.reg == 2) return {InsnClass::CALL_INDIRECT, InsnKind::OTHER};
  return {InsnClass::FAR_CALL, InsnKind::CALL_FAR};  // 9A, FF /3
}

Meaning jump_meaning(const ZydisDecodedInstruction& raw) noexcept {
  if (raw.opcode == 0xE9 || raw.opcode == 0xEB) return {InsnClass::JUMP, InsnKind::OTHER};
  if (raw.opcode == 0xFF && raw.raw.modrm.reg == 4) return {InsnClass::JUMP_INDIRECT, InsnKind::OTHER};
  return {InsnClass::FAR_JUMP, InsnKind::JMP_FAR};  // EA, FF /5
}

Meaning return_meaning(const ZydisDecodedInstruction& raw) noexcept {
  if (raw.opcode == 0xC2 || raw.opcode == 0xC3) return {InsnClass::RETURN, InsnKind::OTHER};
  return {InsnClass::FAR_RETURN, InsnKind::RET_FAR};  // CA, CB
}

Meaning move_meaning(const ZydisDecodedInstruction& raw) noexcept {
  const bool to_control = raw.opcode_map == ZYDIS_OPCODE_MAP_0F && raw.opcode == 0x22;
  const bool third = raw.raw.modrm.reg == 3 && raw.raw.rex.R == 0;
  return {InsnClass::OTHER, to_control && third ? InsnKind::MOV_CR3 : InsnKind::OTHER};
}

// WRMSRNS (NP 0F 01 C6) and WRMSRLIST (F3). Their mnemonics are newer than Zydis 4.0, which rejects them (see
// newer.h).
bool is_wrmsrns_or_wrmsrlist(const ZydisDecodedInstruction& raw) noexcept {
  const auto& modrm = raw.raw.modrm;
  return raw.opcode_map == ZYDIS_OPCODE_MAP_0F && raw.opcode == 0x01 && modrm.mod == 3 && modrm.reg == 0 &&
         modrm.rm == 6 && !has_prefix(raw, kRepnePrefix);
}

// Classifies by the mnemonic alone.
Meaning named_meaning(ZydisMnemonic mnemonic) noexcept {
  using C = InsnClass;
  using K = InsnKind;
  switch (mnemonic) {
    // clang-format off
    case ZYDIS_MNEMONIC_JB: case ZYDIS_MNEMONIC_JBE: case ZYDIS_MNEMONIC_JL: case ZYDIS_MNEMONIC_JLE:
    case ZYDIS_MNEMONIC_JNB: case ZYDIS_MNEMONIC_JNBE: case ZYDIS_MNEMONIC_JNL: case ZYDIS_MNEMONIC_JNLE:
    case ZYDIS_MNEMONIC_JNO: case ZYDIS_MNEMONIC_JNP: case ZYDIS_MNEMONIC_JNS: case ZYDIS_MNEMONIC_JNZ:
    case ZYDIS_MNEMONIC_JO: case ZYDIS_MNEMONIC_JP: case ZYDIS_MNEMONIC_JS: case ZYDIS_MNEMONIC_JZ:
      return {C::COND_JUMP, K::OTHER};
    case ZYDIS_MNEMONIC_JCXZ: case ZYDIS_MNEMONIC_JECXZ: case ZYDIS_MNEMONIC_JRCXZ:
      return {C::COND_JUMP, K::JCXZ};
    case ZYDIS_MNEMONIC_LOOP: case ZYDIS_MNEMONIC_LOOPE: case ZYDIS_MNEMONIC_LOOPNE:
      return {C::COND_JUMP, K::LOOP};
    case ZYDIS_MNEMONIC_INT: return {C::FAR_CALL, K::INT};
    case ZYDIS_MNEMONIC_INT1: return {C::FAR_CALL, K::INT1};
    case ZYDIS_MNEMONIC_INT3: return {C::FAR_CALL, K::INT3};
    case ZYDIS_MNEMONIC_INTO: return {C::FAR_CALL, K::INTO};
    case ZYDIS_MNEMONIC_SYSCALL: return {C::FAR_CALL, K::SYSCALL};
    case ZYDIS_MNEMONIC_SYSENTER: return {C::FAR_CALL, K::SYSENTER};
    case ZYDIS_MNEMONIC_VMCALL: return {C::FAR_CALL, K::VMCALL};
    case ZYDIS_MNEMONIC_VMLAUNCH: return {C::FAR_CALL, K::VMLAUNCH};
    case ZYDIS_MNEMONIC_VMRESUME: return {C::FAR_CALL, K::VMRESUME};
    case ZYDIS_MNEMONIC_IRET: case ZYDIS_MNEMONIC_IRETD: case ZYDIS_MNEMONIC_IRETQ:
      return {C::FAR_RETURN, K::IRET};
    case ZYDIS_MNEMONIC_SYSRET: return {C::FAR_RETURN, K::SYSRET};
    case ZYDIS_MNEMONIC_SYSEXIT: return {C::FAR_RETURN, K::SYSEXIT};
    case ZYDIS_MNEMONIC_UIRET: return {C::FAR_RETURN, K::UIRET};
    case ZYDIS_MNEMONIC_RSM: return {C::FAR_RETURN, K::RSM};
    case ZYDIS_MNEMONIC_PTWRITE: return {C::PTWRITE, K::PTWRITE};
    case ZYDIS_MNEMONIC_VMPTRLD: return {C::OTHER, K::VMPTRLD};
    case ZYDIS_MNEMONIC_WRMSR: return {C::OTHER, K::WRMSR};
    case ZYDIS_MNEMONIC_MWAIT: return {C::OTHER, K::MWAIT};
    case ZYDIS_MNEMONIC_XBEGIN: return {C::OTHER, K::XBEGIN};
    case ZYDIS_MNEMONIC_XEND: return {C::OTHER, K::XEND};
    case ZYDIS_MNEMONIC_XABORT: return {C::OTHER, K::XABORT};
    case ZYDIS_MNEMONIC_UD0: case ZYDIS_MNEMONIC_UD1: case ZYDIS_MNEMONIC_UD2: return {C::OTHER, K::UD};
    case ZYDIS_MNEMONIC_HLT: return {C::OTHER, K::HLT};
    case ZYDIS_MNEMONIC_CLI: return {C::OTHER, K::CLI};
    case ZYDIS_MNEMONIC_STI: return {C::OTHER, K::STI};
    case ZYDIS_MNEMONIC_POPF: case ZYDIS_MNEMONIC_POPFD: case ZYDIS_MNEMONIC_POPFQ: return {C::OTHER, K::POPF};
    default: return {};
      // clang-format on
  }
}

Meaning meaning_of(const ZydisDecodedInstruction& raw) noexcept {
  switch (raw.mnemonic) {
    case ZYDIS_MNEMONIC_CALL:
      return call_meaning(raw);
    case ZYDIS_MNEMONIC_JMP:
      return jump_meaning(raw);
    case ZYDIS_MNEMONIC_RET:
      return return_meaning(raw);
    case ZYDIS_MNEMONIC_MOV:
      return move_meaning(raw);
    default:
      if (is_wrmsrns_or_wrmsrlist(raw)) return {InsnClass::OTHER, InsnKind::WRMSR};
      return named_meaning(raw.mnemonic);
  }
}

// The width of the instruction pointer after a direct branch. In 64-bit mode, Intel processors ignore 66 on
// near branches. In other modes, a 16-bit operand size clears the upper half of EIP. XBEGIN's fallback
// address is not truncated to its operand size.
std::uint8_t target_bits(const ZydisDecodedInstruction& raw, ExecMode mode, InsnKind kind) noexcept {
  if (mode == ExecMode::BITS64) return 64;
  if (kind == InsnKind::XBEGIN) return 32;
  const bool override_size = has_prefix(raw, kOperandSizePrefix);
  return (mode == ExecMode::BITS16) != override_size ? 16 : 32;
}

std::array<ZydisDecoder, 6> make_decoders() noexcept {
  struct Setup {
    ZydisMachineMode mode;
    ZydisStackWidth stack;
  };
  constexpr std::array<Setup, 3> kSetups = {{
      {ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64},
      {ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32},
      {ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16},
  }};
  std::array<ZydisDecoder, 6> decoders{};
  for (std::size_t i = 0; i < decoders.size(); ++i) {
    const Setup& setup = kSetups[i / 2];
    // The calls cannot fail: Zydis accepts these pairs of mode and stack width.
    (void)ZydisDecoderInit(&decoders[i], setup.mode, setup.stack);
    (void)ZydisDecoderEnableMode(&decoders[i], ZYDIS_DECODER_MODE_MINIMAL, i % 2 == 1);
  }
  return decoders;
}

}  // namespace

const ZydisDecoder* zydis_decoder(ExecMode mode, bool minimal) noexcept {
  static const std::array<ZydisDecoder, 6> decoders = make_decoders();
  switch (mode) {
    case ExecMode::BITS64:
      return &decoders[minimal ? 1 : 0];
    case ExecMode::BITS32:
      return &decoders[minimal ? 3 : 2];
    case ExecMode::BITS16:
      return &decoders[minimal ? 5 : 4];
    case ExecMode::UNKNOWN:
      break;
  }
  return nullptr;
}

void classify(const ZydisDecodedInstruction& raw, ExecMode mode, Insn& out) noexcept {
  const Meaning meaning = meaning_of(raw);
  out.cls = meaning.cls;
  out.kind = meaning.kind;
  out.rep = is_string_instruction(raw) && (has_prefix(raw, kRepPrefix) || has_prefix(raw, kRepnePrefix));
  if (raw.raw.imm[0].is_relative) {
    out.displacement = raw.raw.imm[0].value.s;
    out.target_bits = target_bits(raw, mode, meaning.kind);
  }
}

}  // namespace ptkit::code::insn
