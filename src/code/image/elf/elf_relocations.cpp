#include "code/image/elf/elf_relocations.h"

namespace ptkit::code::image {
namespace {

using Section = ElfFile::Section;

// The table of symbols that a section of relocations refers to.
struct SymbolTable {
  Elf_Data* symbols = nullptr;  // null: its symbols are not the dynamic linker's
  std::size_t names = 0;        // index of the section with their names
};

// Static programs have relocations without symbols.
SymbolTable symbols_of(const ElfFile& file, const Section& section) {
  Elf_Scn* const symbols = elf_getscn(file.get(), section.header.sh_link);
  GElf_Shdr header{};
  if (symbols == nullptr || gelf_getshdr(symbols, &header) == nullptr || header.sh_type != SHT_DYNSYM)
    return {};
  return {elf_getdata(symbols, nullptr), header.sh_link};
}

bool read_entry(Elf_Data* data, int index, bool has_addend, GElf_Rela& entry) {
  if (has_addend) return gelf_getrela(data, index, &entry) != nullptr;
  GElf_Rel without_addend;
  if (gelf_getrel(data, index, &without_addend) == nullptr) return false;
  entry.r_offset = without_addend.r_offset;
  entry.r_info = without_addend.r_info;
  return true;
}

void read_symbol(const ElfFile& file, const SymbolTable& table, ElfRelocation& relocation) {
  GElf_Sym symbol;
  const auto index = GELF_R_SYM(relocation.entry.r_info);
  if (table.symbols == nullptr || index == 0 || index > 0x7FFF'FFFF) return;
  if (gelf_getsym(table.symbols, static_cast<int>(index), &symbol) == nullptr) return;
  const char* const name = elf_strptr(file.get(), table.names, symbol.st_name);
  if (name != nullptr) relocation.name = name;
  relocation.is_undefined = symbol.st_shndx == SHN_UNDEF;
}

}  // namespace

void for_each_relocation(const ElfFile& file, const std::vector<Section>& sections,
                         const std::function<bool(const ElfRelocation&)>& visit) {
  std::size_t left = file.bytes().size() / sizeof(Elf32_Rel);  // sections of a hostile file may share bytes
  for (const Section& section : sections) {
    const auto type = section.header.sh_type;
    if (type != SHT_RELA && type != SHT_REL) continue;
    const SymbolTable table = symbols_of(file, section);
    Elf_Data* const data = elf_getdata(section.handle, nullptr);
    for (int i = 0; data != nullptr; ++i, --left) {
      if (left == 0) return;
      ElfRelocation one;
      one.has_addend = type == SHT_RELA;
      if (!read_entry(data, i, one.has_addend, one.entry)) break;
      read_symbol(file, table, one);
      if (!visit(one)) return;
    }
  }
}

}  // namespace ptkit::code::image
