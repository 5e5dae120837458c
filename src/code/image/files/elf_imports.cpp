#include "code/image/elf/elf_file.h"
#include "code/image/elf/elf_relocations.h"
#include "code/image/files/import_readers.h"
#include "code/image/name_budget.h"

namespace ptkit::code::image {
namespace {

// Numbers of both processors.
constexpr std::uint64_t kGlobalData = 6;  // R_X86_64_GLOB_DAT, R_386_GLOB_DAT
constexpr std::uint64_t kJumpSlot = 7;    // R_X86_64_JUMP_SLOT, R_386_JMP_SLOT
static_assert(R_X86_64_GLOB_DAT == kGlobalData && R_386_GLOB_DAT == kGlobalData &&
              R_X86_64_JUMP_SLOT == kJumpSlot && R_386_JMP_SLOT == kJumpSlot);

// The libraries of functions, by their versions: a version is one library's. LSB Core 5.0, section "Symbol
// Versioning".
class Libraries {
 public:
  Libraries(const ElfFile& file, const std::vector<ElfFile::Section>& sections) {
    for (const ElfFile::Section& section : sections) {
      if (section.header.sh_type == SHT_GNU_versym) versions_ = elf_getdata(section.handle, nullptr);
      if (section.header.sh_type == SHT_GNU_verneed) read_needed(file, section);
    }
  }

  // Empty if the symbol has no version.
  [[nodiscard]] std::string_view of(std::uint64_t symbol) const {
    constexpr GElf_Versym kHidden = 0x8000;
    GElf_Versym version = 0;
    const bool has_version = versions_ != nullptr && symbol <= 0x7FFF'FFFF &&
                             gelf_getversym(versions_, static_cast<int>(symbol), &version) != nullptr;
    const auto found = has_version ? by_version_.find(version & ~kHidden) : by_version_.end();
    return found == by_version_.end() ? std::string_view{} : found->second;
  }

 private:
  static constexpr int kMostVersions = 0x7FFF;  // their numbers have 15 bits

  void read_needed(const ElfFile& file, const ElfFile::Section& section) {
    Elf_Data* const data = elf_getdata(section.handle, nullptr);
    GElf_Verneed library;
    int left = kMostVersions;  // lists of damaged files may share entries
    for (int at = 0; data != nullptr && gelf_getverneed(data, at, &library) != nullptr;) {
      const char* const name = elf_strptr(file.get(), section.header.sh_link, library.vn_file);
      if (name == nullptr || !add_versions(data, at, library, name, left)) return;
      if (!advance(at, library.vn_next)) return;
    }
  }

  bool add_versions(Elf_Data* data, int at, const GElf_Verneed& library, std::string_view name, int& left) {
    GElf_Vernaux version;
    if (!advance(at, library.vn_aux)) return false;
    while (gelf_getvernaux(data, at, &version) != nullptr) {
      if (--left < 0) return false;
      by_version_.try_emplace(version.vna_other & 0x7FFF, name);
      if (!advance(at, version.vna_next)) break;
    }
    return --left >= 0;
  }

  // False: there is no next entry.
  static bool advance(int& at, std::uint32_t distance) {
    if (distance == 0 || distance > 0x7FFF'FFFFU - static_cast<std::uint32_t>(at)) return false;
    at += static_cast<int>(distance);
    return true;
  }

  Elf_Data* versions_ = nullptr;
  std::map<int, std::string_view> by_version_;  // names are in the file
};

}  // namespace

ImportSlots read_import_slots(const ElfFile& file) {
  ImportSlots slots;
  const auto base = linked_address(file.bytes());
  if (!base) return slots;
  slots.is_64_bit = file.header().e_ident[EI_CLASS] == ELFCLASS64;
  slots.linked_base = *base;
  const std::vector<ElfFile::Section> sections = file.sections();
  if (const auto table = file.global_offsets(sections)) slots.table = *table - *base;
  const Libraries libraries(file, sections);
  NameBudget names(file.bytes().size());
  for_each_relocation(file, sections, [&](const ElfRelocation& one) {
    const auto type = GELF_R_TYPE(one.entry.r_info);
    if (!one.is_undefined || one.name.empty() || (type != kGlobalData && type != kJumpSlot)) return true;
    const std::string_view library = libraries.of(GELF_R_SYM(one.entry.r_info));
    if (!names.take(one.name) || !names.take(library)) return false;
    slots.slots.try_emplace(one.entry.r_offset - *base,
                            ImportSlots::Slot{std::string(one.name), std::string(library)});
    return true;
  });
  return slots;
}

}  // namespace ptkit::code::image
