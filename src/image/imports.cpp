#include "image/imports.h"

#include "image/elf_file.h"
#include "image/import_readers.h"
#include "image/pe.h"
#include "image/pe_file.h"

namespace ptkit::image {
namespace {

struct SlotOperand {
  std::size_t end = 0;  // of the instruction; 0: it is no indirect CALL or JMP through memory
  std::uint64_t displacement = 0;
  bool is_relative = false;  // to EBX, which has the address of the global offset table
};

// FF /2 and FF /4 with ModRM 00 reg 101, or 10 reg 011 (EBX), after REX (Windows' linkers write 48 ff 25),
// BND or NOTRACK.
SlotOperand slot_operand(base::Bytes code) noexcept {
  std::size_t at = 0;
  while (at < code.size() && at < 2 && (code[at] == 0xF2 || code[at] == 0x3E || (code[at] & 0xF0U) == 0x40U))
    ++at;
  if (code.size() - at < 6 || code[at] != 0xFF) return {};
  const std::uint8_t operand = code[at + 1];
  const bool is_relative = operand == 0x93 || operand == 0xA3;
  if (!is_relative && operand != 0x15 && operand != 0x25) return {};
  return {at + 6, base::load_le<4>(code.data() + at + 2), is_relative};
}

}  // namespace

Imports::Imports(base::Bytes bytes) {
  if (is_pe(bytes)) {
    const auto file = PeFile::open(bytes);
    if (file.ok()) slots_ = read_import_slots(file.value());
  } else {
    const auto file = ElfFile::open(bytes);
    if (file.ok()) slots_ = read_import_slots(file.value());
  }
  if (empty()) return;
  segments_ = file_segments(bytes);
  std::erase_if(segments_, [](const FileSegment& segment) { return !segment.executable; });
}

std::string_view Imports::at(std::uint64_t rva) const noexcept {
  const auto found = slots_.names.find(rva);
  return found == slots_.names.end() ? std::string_view{} : std::string_view(found->second);
}

std::string_view Imports::called(base::Bytes code, std::uint64_t rva, std::uint64_t address) const noexcept {
  const SlotOperand operand = slot_operand(code);
  if (operand.end == 0) return {};
  const std::uint64_t displacement = base::sign_extend(operand.displacement, 32);
  if (operand.is_relative)
    return slots_.is_64_bit || slots_.table == 0 ? std::string_view{} : at(slots_.table + displacement);
  if (slots_.is_64_bit) return at(rva + operand.end + displacement);
  // Code in memory has the address that relocation gave it, code of the file the linked one.
  const std::string_view name = at(operand.displacement - (address - rva));
  return name.empty() ? at(operand.displacement - slots_.linked_base) : name;
}

}  // namespace ptkit::image
