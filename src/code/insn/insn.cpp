#include "code/insn/insn.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/hexadecimal.h"
#include "code/insn/classify.h"
#include "code/insn/newer.h"
#include "code/insn/quick.h"

namespace ptkit::code::insn {
namespace {

constexpr std::uint64_t kLast16 = 0xFFFF;
constexpr std::uint64_t kLast32 = 0xFFFF'FFFF;

// Wraps the effective address of `to` as an instruction at `from` does. See insn.h for 16-bit code above 64
// KiB.
std::uint64_t cut(std::uint64_t to, unsigned bits, ExecMode mode, std::uint64_t from,
                  std::uint32_t cs_base) noexcept {
  if (bits == 64) return to;
  const std::uint64_t base = mode == ExecMode::BITS64 ? 0 : cs_base;
  if (bits == 16 && (mode != ExecMode::BITS16 || ((from - base) & kLast32) <= kLast16))
    return (((to - base) & kLast16) + base) & kLast32;
  return to & kLast32;
}

bool is_direct(const Insn& insn) noexcept {
  return insn.cls == InsnClass::COND_JUMP || insn.cls == InsnClass::JUMP || insn.cls == InsnClass::CALL ||
         insn.kind == InsnKind::XBEGIN;
}

ZydisFormatter make_formatter() {
  ZydisFormatter formatter;
  (void)ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  (void)ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
  for (const auto property :
       {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
        ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING}) {
    (void)ZydisFormatterSetProperty(&formatter, property, ZYDIS_PADDING_DISABLED);
  }
  return formatter;
}

// A displacement beside an index alone is an address (a table): of 32 bits, it is not negative.
void show_as_address(const ZydisDecodedInstruction& insn, ZydisDecodedOperand& operand) {
  if (insn.address_width == 32 && operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
      operand.mem.base == ZYDIS_REGISTER_NONE && operand.mem.index != ZYDIS_REGISTER_NONE)
    operand.mem.disp.value &= std::int64_t{0xffff'ffff};
}

// The text by Zydis, or empty.
std::string zydis_text(ExecMode mode, base::Bytes code, std::uint64_t ip) {
  static const ZydisFormatter formatter = make_formatter();
  const ZydisDecoder* decoder = zydis_decoder(mode, false);
  if (decoder == nullptr) return {};
  ZydisDecodedInstruction raw;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code.data(), code.size(), &raw, operands.data())))
    return {};
  for (std::size_t i = 0; i < raw.operand_count_visible; ++i) show_as_address(raw, operands.at(i));
  std::array<char, 256> text{};
  if (!ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &raw, operands.data(),
                                                    raw.operand_count_visible, text.data(), text.size(), ip,
                                                    nullptr))) {
    return {};
  }
  return text.data();
}

// The text of an instruction that Zydis does not decode in its original form.
std::string newer_text(ExecMode mode, base::Bytes code, const Insn& insn, std::uint64_t ip) {
  if (insn.kind == InsnKind::JMPABS) return "jmpabs " + base::hexadecimal(insn.absolute);
  const Rewritten plain = without_rex2(code);
  if (mode != ExecMode::BITS64 || plain.size == 0) return newer_name(mode, code);
  std::string text = zydis_text(mode, plain.bytes(), ip + plain.shorter_by);
  if (text.empty()) return newer_name(mode, code);
  // This version of Zydis has no names for registers above 15: show only the mnemonic instead of wrong
  // operands.
  if (plain.has_high_registers) text = text.substr(0, text.find(' ')) + " ...";
  return text;
}

}  // namespace

base::Status decode(ExecMode mode, base::Bytes code, Insn& out) noexcept {
  return decode_quick(mode, code, out) ? base::Status::OK : decode_exactly(mode, code, out);
}

base::Status decode_exactly(ExecMode mode, base::Bytes code, Insn& out) noexcept {
  out = Insn{};
  const ZydisDecoder* decoder = zydis_decoder(mode, true);
  if (decoder == nullptr) return base::Status::BAD_INSN;
  if (code.empty()) return base::Status::NO_CODE;
  code = code.first(std::min<std::size_t>(code.size(), kMaxSize));
  ZydisDecodedInstruction raw;
  const ZyanStatus status = ZydisDecoderDecodeInstruction(decoder, nullptr, code.data(), code.size(), &raw);
  if (ZYAN_SUCCESS(status)) {
    out.size = raw.length;
    classify(raw, mode, out);
    return base::Status::OK;
  }
  if (status == ZYDIS_STATUS_NO_MORE_DATA) {
    return code.size() < kMaxSize ? base::Status::NO_CODE : base::Status::BAD_INSN;
  }
  return decode_newer(mode, code, out);
}

std::uint64_t direct_target(const Insn& insn, ExecMode mode, std::uint64_t ip,
                            std::uint32_t cs_base) noexcept {
  if (insn.kind == InsnKind::JMPABS) return insn.absolute;
  const std::uint64_t to = ip + insn.size + static_cast<std::uint64_t>(insn.displacement);
  return cut(to, insn.target_bits, mode, ip, cs_base);
}

std::optional<std::uint64_t> direct_target(ExecMode mode, base::Bytes code, std::uint64_t ip,
                                           std::uint32_t cs_base) noexcept {
  Insn insn;
  if (decode(mode, code, insn) != base::Status::OK || !is_direct(insn)) return std::nullopt;
  return direct_target(insn, mode, ip, cs_base);
}

std::uint64_t next_ip(const Insn& insn, ExecMode mode, std::uint64_t ip, std::uint32_t cs_base) noexcept {
  const unsigned bits = mode == ExecMode::UNKNOWN ? 64 : static_cast<unsigned>(mode);
  return cut(ip + insn.size, bits, mode, ip, cs_base);
}

std::string disassemble(ExecMode mode, base::Bytes code, std::uint64_t ip, std::uint32_t cs_base) {
  Insn insn;
  if (decode(mode, code, insn) != base::Status::OK) return "(bad)";
  const base::Bytes own = code.first(insn.size);
  std::string text = zydis_text(mode, own, ip);
  if (text.empty()) text = newer_text(mode, own, insn, ip);
  // Zydis truncates targets by the operand size alone. Text and flow use direct_target() instead.
  if (is_direct(insn) && insn.kind != InsnKind::JMPABS) {
    const std::size_t space = text.rfind(' ');
    if (space != std::string::npos) text.resize(space);
    text += ' ' + base::hexadecimal(direct_target(insn, mode, ip, cs_base));
  }
  return text;
}

}  // namespace ptkit::code::insn
