#include "code/image/files/imports.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ptkit::code::image {
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

Imports::Imports(const ImportSlots& slots, std::vector<FileSegment> segments)
    : is_64_bit_(slots.is_64_bit),
      linked_base_(slots.linked_base),
      table_(slots.table),
      segments_(std::move(segments)) {
  std::erase_if(segments_, [](const FileSegment& segment) { return !segment.executable; });
  std::map<std::string_view, std::uint32_t> numbers;
  for (const auto& [rva, slot] : slots.slots) {
    std::uint32_t module = 0;
    if (!slot.module.empty()) {
      const auto [number, is_new] =
          numbers.try_emplace(slot.module, static_cast<std::uint32_t>(modules_.size() + 1));
      if (is_new) modules_.push_back(slot.module);
      module = number->second;
    }
    add(rva, slot.name, module);
  }
}

void Imports::add(std::uint64_t rva, std::string_view name, std::uint32_t module) {
  if (name.size() > std::numeric_limits<std::uint32_t>::max() - names_.size()) return;
  slots_.push_back(
      {rva, static_cast<std::uint32_t>(names_.size()), static_cast<std::uint32_t>(name.size()), module});
  names_ += name;
}

Import Imports::at(std::uint64_t rva) const noexcept {
  const auto found = std::ranges::lower_bound(slots_, rva, {}, &Slot::rva);
  if (found == slots_.end() || found->rva != rva) return {};
  return {name_of(*found),
          found->module == 0 ? std::string_view{} : std::string_view(modules_[found->module - 1])};
}

Import Imports::called(base::Bytes code, std::uint64_t rva, std::uint64_t address) const noexcept {
  const SlotOperand operand = slot_operand(code);
  if (operand.end == 0) return {};
  const std::uint64_t displacement = base::sign_extend(operand.displacement, 32);
  if (operand.is_relative) return is_64_bit_ || table_ == 0 ? Import{} : at(table_ + displacement);
  if (is_64_bit_) return at(rva + operand.end + displacement);
  // Code in memory has the address that relocation gave it, code of the file the linked one.
  const Import moved = at(operand.displacement - (address - rva));
  return moved.name.empty() ? at(operand.displacement - linked_base_) : moved;
}

Imports Imports::redacted() const {
  constexpr std::string_view kOrdinal = "!Ordinal";
  Imports out;
  out.is_64_bit_ = is_64_bit_;
  out.linked_base_ = linked_base_;
  out.table_ = table_;
  out.segments_ = segments_;
  for (std::size_t i = 0; i < modules_.size(); ++i) out.modules_.push_back("module-" + std::to_string(i + 1));
  for (const Slot& slot : slots_) {
    std::string name(name_of(slot));
    const std::string module = slot.module == 0 ? "module" : out.modules_[slot.module - 1];
    if (const std::size_t end = name.rfind(kOrdinal); end != std::string::npos) name.replace(0, end, module);
    out.add(slot.rva, name, slot.module);
  }
  return out;
}

}  // namespace ptkit::code::image
