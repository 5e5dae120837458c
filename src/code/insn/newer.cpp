#include "code/insn/newer.h"

#include <algorithm>
#include <optional>

#include "code/insn/classify.h"

namespace ptkit::code::insn {
namespace {

using base::Status;

enum class Operands : std::uint8_t {
  FIXED,
  ANY,
  MEMORY
};  // allowed ModRM bytes: by mask and match only, or memory operands only

// Legacy-encoded instructions. Prefix 0 means none of 66, F2 and F3; map 1 is 0F, map 2 is 0F 38.
struct Row {
  std::uint8_t prefix;
  std::uint8_t map;
  std::uint8_t opcode;
  std::uint8_t mask;  // ModRM & mask == match
  std::uint8_t match;
  Operands operands;
  bool only_64;
  InsnClass cls;
  InsnKind kind;
  const char* name;
};

// clang-format off
constexpr Row kRows[] = {
    {0xF2, 1, 0x01, 0xFF, 0xCA, Operands::FIXED,  true,  InsnClass::FAR_RETURN, InsnKind::ERETS, "erets"},
    {0xF3, 1, 0x01, 0xFF, 0xCA, Operands::FIXED,  true,  InsnClass::FAR_RETURN, InsnKind::ERETU, "eretu"},
    {0xF2, 1, 0x00, 0x38, 0x30, Operands::ANY,    true,  InsnClass::OTHER,      InsnKind::OTHER, "lkgs"},
    {0x00, 1, 0x01, 0xFF, 0xC6, Operands::FIXED,  false, InsnClass::OTHER,      InsnKind::WRMSR, "wrmsrns"},
    {0xF3, 1, 0x01, 0xFF, 0xC6, Operands::FIXED,  true,  InsnClass::OTHER,      InsnKind::WRMSR, "wrmsrlist"},
    {0xF2, 1, 0x01, 0xFF, 0xC6, Operands::FIXED,  true,  InsnClass::OTHER,      InsnKind::OTHER, "rdmsrlist"},
    {0x00, 1, 0x01, 0xFF, 0xC7, Operands::FIXED,  true,  InsnClass::OTHER,      InsnKind::OTHER, "pbndkb"},
    {0xF2, 2, 0xF8, 0xC0, 0xC0, Operands::ANY,    true,  InsnClass::OTHER,      InsnKind::OTHER, "urdmsr"},
    {0xF3, 2, 0xF8, 0xC0, 0xC0, Operands::ANY,    true,  InsnClass::OTHER,      InsnKind::OTHER, "uwrmsr"},
    {0x00, 2, 0xFC, 0x00, 0x00, Operands::MEMORY, false, InsnClass::OTHER,      InsnKind::OTHER, "aadd"},
    {0x66, 2, 0xFC, 0x00, 0x00, Operands::MEMORY, false, InsnClass::OTHER,      InsnKind::OTHER, "aand"},
    {0xF2, 2, 0xFC, 0x00, 0x00, Operands::MEMORY, false, InsnClass::OTHER,      InsnKind::OTHER, "aor"},
    {0xF3, 2, 0xFC, 0x00, 0x00, Operands::MEMORY, false, InsnClass::OTHER,      InsnKind::OTHER, "axor"},
    {0x00, 2, 0x8A, 0x00, 0x00, Operands::MEMORY, true,  InsnClass::OTHER,      InsnKind::OTHER, "movrs"},
    {0x00, 2, 0x8B, 0x00, 0x00, Operands::MEMORY, true,  InsnClass::OTHER,      InsnKind::OTHER, "movrs"},
    {0x66, 2, 0x8B, 0x00, 0x00, Operands::MEMORY, true,  InsnClass::OTHER,      InsnKind::OTHER, "movrs"},
};
// clang-format on

struct Prefixes {
  std::size_t size = 0;
  bool operand_size = false;
  bool address_size = false;
  bool lock = false;
  bool rex = false;
  std::uint8_t repeat = 0;  // the last of F2 and F3
};

Prefixes read_prefixes(ExecMode mode, base::Bytes code) noexcept {
  Prefixes found;
  for (; found.size < code.size(); ++found.size) {
    const std::uint8_t byte = code[found.size];
    if (byte == 0x66)
      found.operand_size = true;
    else if (byte == 0x67)
      found.address_size = true;
    else if (byte == 0xF0)
      found.lock = true;
    else if (byte == 0xF2 || byte == 0xF3)
      found.repeat = byte;
    else if (byte != 0x26 && byte != 0x2E && byte != 0x36 && byte != 0x3E && byte != 0x64 && byte != 0x65)
      break;
  }
  if (mode == ExecMode::BITS64 && found.size < code.size() && (code[found.size] & 0xF0) == 0x40) {
    found.rex = true;
    ++found.size;
  }
  return found;
}

// A decoded encoding. `size` includes all prefixes.
struct Found {
  Status status = Status::BAD_INSN;
  std::size_t size = 0;
  const Row* row = nullptr;
  const char* name = "";
};

Found ends_early() noexcept { return {Status::NO_CODE, 0, nullptr, ""}; }

// Size of ModRM, SIB and displacement (manual vol. 2, 2.1.5), or nullopt if the code ends inside them.
std::optional<std::size_t> modrm_size(ExecMode mode, bool address_size, base::Bytes code) noexcept {
  if (code.empty()) return std::nullopt;
  const unsigned mod = code[0] >> 6;
  const unsigned rm = code[0] & 7;
  if (mod == 3) return 1;
  const bool wide = mode == ExecMode::BITS64 || (mode == ExecMode::BITS32) != address_size;
  if (!wide) return 1 + (mod == 0 ? (rm == 6 ? 2U : 0U) : mod);
  std::size_t size = 1;
  unsigned base_register = rm;
  if (rm == 4) {
    if (code.size() < 2) return std::nullopt;
    base_register = code[1] & 7;
    ++size;
  }
  if (mod == 1) return size + 1;
  if (mod == 2 || base_register == 5) return size + 4;
  return size;
}

bool matches(const Row& row, std::uint8_t modrm) noexcept {
  if (row.operands == Operands::MEMORY && modrm >= 0xC0) return false;
  return (modrm & row.mask) == row.match;
}

// `at` is the offset after 0F.
Found find_legacy(ExecMode mode, const Prefixes& prefixes, base::Bytes code, std::size_t at) noexcept {
  std::uint8_t map = 1;
  if (at < code.size() && code[at] == 0x38) {
    map = 2;
    ++at;
  }
  if (at + 2 > code.size()) return ends_early();
  const std::uint8_t prefix = prefixes.repeat != 0 ? prefixes.repeat : (prefixes.operand_size ? 0x66 : 0);
  for (const Row& row : kRows) {
    if (row.prefix != prefix || row.map != map || row.opcode != code[at] || !matches(row, code[at + 1]))
      continue;
    if (prefixes.lock || (row.only_64 && mode != ExecMode::BITS64)) return {};
    const auto operands = modrm_size(mode, prefixes.address_size, code.subspan(at + 1));
    if (!operands) return ends_early();
    return {Status::OK, at + 1 + *operands, &row, row.name};
  }
  return {};
}

// Size of the immediate of a VEX or EVEX instruction in opcode maps 1 (0F), 2 (0F 38), 3 (0F 3A) and 5 to 7.
std::size_t vector_immediate(unsigned map, std::uint8_t opcode) noexcept {
  if (map == 3) return 1;
  if (map == 7) return 4;
  if (map != 1) return 0;
  const bool has = (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xC2 || (opcode >= 0xC4 && opcode <= 0xC6);
  return has ? 1 : 0;
}

// Size of the immediate in EVEX map 4, which holds legacy instructions promoted by APX.
std::size_t promoted_immediate(bool operand_size, std::uint8_t opcode, std::uint8_t modrm) noexcept {
  const std::size_t full = operand_size ? 2 : 4;
  const bool test = ((modrm >> 3) & 7) < 2;  // F6 and F7: only TEST has an immediate
  switch (opcode) {
    case 0x69:
    case 0x81:
      return full;
    case 0xF7:
      return test ? full : 0;
    case 0xF6:
      return test ? 1 : 0;
    case 0x24:
    case 0x2C:
    case 0x6B:
    case 0x80:
    case 0x83:
    case 0xC0:
    case 0xC1:
      return 1;
    default:
      return 0;
  }
}

struct VectorPrefix {
  std::size_t size = 0;  // 0: none
  unsigned map = 0;
  bool operand_size = false;
  const char* name = "";
};

VectorPrefix read_vector_prefix(base::Bytes code) noexcept {
  switch (code[0]) {
    case 0xC5:
      return {2, 1, false, "(unknown vex)"};
    case 0xC4:
      return {3, code[1] & 0x1FU, false, "(unknown vex)"};
    case 0x62:
      return {4, code[1] & 0x07U, code.size() > 2 && (code[2] & 3) == 1, "(unknown evex)"};
    default:
      return {};
  }
}

// Newer vector instructions: the encoding gives their length, and none is a branch.
Found find_vector(ExecMode mode, const Prefixes& prefixes, base::Bytes code, std::size_t at) noexcept {
  if (code[at] != 0x62 && code[at] != 0xC4 && code[at] != 0xC5) return {};
  if (at + 1 >= code.size()) return ends_early();
  // Outside 64-bit mode, these bytes are LDS, LES and BOUND unless a register form of ModRM follows.
  if (mode != ExecMode::BITS64 && code[at + 1] < 0xC0) return {};
  if (prefixes.lock || prefixes.rex || prefixes.operand_size || prefixes.repeat != 0) return {};
  const VectorPrefix vector = read_vector_prefix(code.subspan(at));
  const bool promoted = vector.map == 4 && vector.size == 4 && mode == ExecMode::BITS64;
  if (vector.size == 0 || vector.map == 0 || vector.map > 7 || (vector.map == 4 && !promoted)) return {};
  at += vector.size;
  if (at + 2 > code.size()) return ends_early();
  const std::uint8_t opcode = code[at];
  if (vector.map == 1 && (opcode >> 4) == 8)
    return {};  // conditional jumps on the mask registers of Knights Corner
  const auto operands = modrm_size(mode, prefixes.address_size, code.subspan(at + 1));
  if (!operands) return ends_early();
  const std::size_t immediate = promoted ? promoted_immediate(vector.operand_size, opcode, code[at + 1])
                                         : vector_immediate(vector.map, opcode);
  return {Status::OK, at + 1 + *operands + immediate, nullptr, vector.name};
}

// JMPABS: D5 (REX2 with M0 = W = 0), A1, a 64-bit target.
constexpr std::size_t kJmpabsSize = 11;

bool is_jmpabs(const Prefixes& prefixes, base::Bytes rex2) noexcept {
  return rex2.size() >= 3 && (rex2[1] & 0x88) == 0 && rex2[2] == 0xA1 && !prefixes.operand_size &&
         !prefixes.address_size;
}

Status decode_jmpabs(const Prefixes& prefixes, base::Bytes code, Insn& out) noexcept {
  const std::size_t size = prefixes.size + kJmpabsSize;
  if (size > kMaxSize) return Status::BAD_INSN;
  if (size > code.size()) return Status::NO_CODE;
  out.size = static_cast<std::uint8_t>(size);
  out.cls = InsnClass::JUMP;
  out.kind = InsnKind::JMPABS;
  out.absolute = base::load_le<8>(code.subspan(size - 8).data());
  return Status::OK;
}

Status decode_rex2(const Prefixes& prefixes, base::Bytes code, Insn& out) noexcept {
  if (prefixes.rex) return Status::BAD_INSN;
  if (prefixes.size + 3 > code.size()) return Status::NO_CODE;
  if (is_jmpabs(prefixes, code.subspan(prefixes.size))) return decode_jmpabs(prefixes, code, out);
  const Rewritten plain = without_rex2(code);
  if (plain.size == 0) return Status::BAD_INSN;
  ZydisDecodedInstruction raw;
  const ZyanStatus status = ZydisDecoderDecodeInstruction(zydis_decoder(ExecMode::BITS64, true), nullptr,
                                                          plain.buffer.data(), plain.size, &raw);
  if (status == ZYDIS_STATUS_NO_MORE_DATA) return Status::NO_CODE;
  if (!ZYAN_SUCCESS(status) || raw.length + plain.shorter_by > kMaxSize) return Status::BAD_INSN;
  out.size = static_cast<std::uint8_t>(raw.length + plain.shorter_by);
  classify(raw, ExecMode::BITS64, out);
  return Status::OK;
}

Found find_newer(ExecMode mode, const Prefixes& prefixes, base::Bytes code) noexcept {
  if (prefixes.size >= code.size()) return ends_early();
  if (code[prefixes.size] == 0x0F) return find_legacy(mode, prefixes, code, prefixes.size + 1);
  return find_vector(mode, prefixes, code, prefixes.size);
}

// Opcode rows that REX2 cannot encode: branches, short forms and other prefixes.
bool rex2_reserves(bool second_map, std::uint8_t opcode) noexcept {
  const unsigned row = opcode >> 4;
  if (second_map) return row == 0x3 || row == 0x8;
  constexpr std::uint8_t kNotOpcodes[] = {0x0F, 0x26, 0x2E, 0x36, 0x3E, 0x62, 0x64, 0x65,
                                          0x66, 0x67, 0xC4, 0xC5, 0xD5, 0xF0, 0xF2, 0xF3};
  return row == 0x4 || row == 0x7 || row == 0xA || row == 0xE ||
         std::find(std::begin(kNotOpcodes), std::end(kNotOpcodes), opcode) != std::end(kNotOpcodes);
}

Status with_room(Status status, std::size_t have) noexcept {
  return status == Status::NO_CODE && have >= kMaxSize ? Status::BAD_INSN : status;
}

}  // namespace

Rewritten without_rex2(base::Bytes code) noexcept {
  Rewritten plain;
  const Prefixes prefixes = read_prefixes(ExecMode::BITS64, code);
  const std::size_t at = prefixes.size;
  if (prefixes.rex || code.size() > kMaxSize || at + 3 > code.size() || code[at] != 0xD5) return plain;
  const std::uint8_t payload = code[at + 1];  // M0 R4 X4 B4 W R3 X3 B3
  const bool second_map = (payload & 0x80) != 0;
  if (rex2_reserves(second_map, code[at + 2])) return plain;
  const auto put = [&plain](std::uint8_t byte) { plain.buffer[plain.size++] = byte; };
  for (const std::uint8_t byte : code.first(at)) put(byte);
  put(static_cast<std::uint8_t>(0x40 | (payload & 0x0F)));
  if (second_map) put(0x0F);
  for (const std::uint8_t byte : code.subspan(at + 2)) put(byte);
  plain.shorter_by = second_map ? 0 : 1;
  plain.has_high_registers = (payload & 0x70) != 0;
  return plain;
}

Status decode_newer(ExecMode mode, base::Bytes code, Insn& out) noexcept {
  const Prefixes prefixes = read_prefixes(mode, code);
  if (mode == ExecMode::BITS64 && prefixes.size < code.size() && code[prefixes.size] == 0xD5) {
    return with_room(decode_rex2(prefixes, code, out), code.size());
  }
  const Found found = find_newer(mode, prefixes, code);
  if (found.status != Status::OK) return with_room(found.status, code.size());
  if (found.size > kMaxSize) return Status::BAD_INSN;
  if (found.size > code.size()) return Status::NO_CODE;
  out.size = static_cast<std::uint8_t>(found.size);
  if (found.row != nullptr) {
    out.cls = found.row->cls;
    out.kind = found.row->kind;
  }
  return Status::OK;
}

std::string newer_name(ExecMode mode, base::Bytes code) {
  const Prefixes prefixes = read_prefixes(mode, code);
  if (mode == ExecMode::BITS64 && prefixes.size < code.size() && code[prefixes.size] == 0xD5) {
    if (is_jmpabs(prefixes, code.subspan(prefixes.size))) return "jmpabs";
    return "(rex2)";
  }
  const Found found = find_newer(mode, prefixes, code);
  if (found.status != Status::OK) return "(bad)";
  const bool has_operands = found.row != nullptr && found.row->operands != Operands::FIXED;
  return has_operands ? std::string(found.name) + " ..." : found.name;
}

}  // namespace ptkit::code::insn
