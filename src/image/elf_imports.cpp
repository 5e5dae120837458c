#include "image/elf_relocations.h"
#include "image/import_readers.h"
#include "image/name_budget.h"

namespace ptkit::image {
namespace {

// Numbers of both processors.
constexpr std::uint64_t kGlobalData = 6;  // R_X86_64_GLOB_DAT, R_386_GLOB_DAT
constexpr std::uint64_t kJumpSlot = 7;    // R_X86_64_JUMP_SLOT, R_386_JMP_SLOT
static_assert(R_X86_64_GLOB_DAT == kGlobalData && R_386_GLOB_DAT == kGlobalData &&
              R_X86_64_JUMP_SLOT == kJumpSlot && R_386_JMP_SLOT == kJumpSlot);

}  // namespace

ImportSlots read_import_slots(const ElfFile& file) {
  ImportSlots slots;
  const auto base = linked_address(file.bytes());
  if (!base) return slots;
  slots.is_64_bit = file.header().e_ident[EI_CLASS] == ELFCLASS64;
  slots.linked_base = *base;
  const std::vector<ElfFile::Section> sections = file.sections();
  if (const auto table = file.global_offsets(sections)) slots.table = *table - *base;
  NameBudget names(file.bytes().size());
  for_each_relocation(file, sections, [&](const ElfRelocation& one) {
    const auto type = GELF_R_TYPE(one.entry.r_info);
    if (!one.is_undefined || one.name.empty() || (type != kGlobalData && type != kJumpSlot)) return true;
    if (!names.take(one.name)) return false;
    slots.names.try_emplace(one.entry.r_offset - *base, one.name);
    return true;
  });
  return slots;
}

}  // namespace ptkit::image
