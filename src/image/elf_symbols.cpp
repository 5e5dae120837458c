// Names of code in an ELF file: symbol tables, and the stubs of the procedure linkage table by their
// relocations.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "image/elf.h"
#include "image/elf_file.h"
#include "image/name_budget.h"

namespace ptkit::image {
namespace {

using Section = ElfFile::Section;

struct Candidate {
  trace::SymbolEntry entry;
  int rank = 0;  // among names of one address the lowest is shown
};

// Functions before bare labels, global names before weak and local ones, and names for use before internal
// ones.
int rank_of(const GElf_Sym& symbol, std::string_view name) noexcept {
  int rank = GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE ? 100 : 0;
  switch (GELF_ST_BIND(symbol.st_info)) {
    case STB_GLOBAL:
      break;
    case STB_WEAK:
      rank += 10;
      break;
    default:
      rank += 20;
  }
  const auto underscores = std::min(name.find_first_not_of('_'), std::size_t{5});
  return name.starts_with("_Z") || name.starts_with("_R") ? rank : rank + static_cast<int>(underscores);
}

bool is_code_type(unsigned type) noexcept {
  return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

class Reader {
 public:
  explicit Reader(const ElfFile& file)
      : file_(file), sections_(file.sections()), names_(file.bytes().size()) {}

  std::vector<trace::SymbolEntry> run() {
    for (const Section& section : sections_) {
      const auto type = section.header.sh_type;
      if (type == SHT_SYMTAB || type == SHT_DYNSYM) read_table(section);
    }
    read_slots();
    for (const Section& section : sections_) {
      if (section.name == ".plt" || section.name.starts_with(".plt.")) read_stubs(section);
    }
    return sorted();
  }

 private:
  void read_table(const Section& table) {
    Elf_Data* data = elf_getdata(table.handle, nullptr);
    for (int i = 1; data != nullptr; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, i, &symbol) == nullptr) return;
      if (!is_code_type(GELF_ST_TYPE(symbol.st_info)) || symbol.st_shndx == SHN_UNDEF) continue;
      const char* name = elf_strptr(file_.get(), table.header.sh_link, symbol.st_name);
      if (name == nullptr) continue;
      if (!names_.take(name)) return;
      add(symbol, name);
    }
  }

  void add(const GElf_Sym& symbol, std::string_view name) {
    // Names that assemblers and compilers make up: local labels, mapping symbols.
    if (name.empty() || name.starts_with(".L") || name.starts_with("$")) return;
    const Section* section = section_of(symbol);
    if (section == nullptr) return;
    const GElf_Shdr& header = section->header;
    const bool is_object = file_.header().e_type == ET_REL;  // there, values count from the section
    const std::uint64_t inside = is_object ? symbol.st_value : symbol.st_value - header.sh_addr;
    if (inside >= header.sh_size) return;
    std::optional<std::uint64_t> offset = header.sh_offset + inside;
    if (!is_object) offset = file_.file_offset(symbol.st_value);
    if (!offset || *offset >= file_.bytes().size()) return;
    found_.push_back({{std::string(name), *offset, std::min(symbol.st_size, header.sh_size - inside)},
                      rank_of(symbol, name)});
  }

  // The executable section that a symbol stands in. Sections are sorted by their index.
  const Section* section_of(const GElf_Sym& symbol) const {
    const auto found = std::lower_bound(
        sections_.begin(), sections_.end(), symbol.st_shndx,
        [](const Section& section, std::size_t index) { return elf_ndxscn(section.handle) < index; });
    if (found == sections_.end() || elf_ndxscn(found->handle) != symbol.st_shndx) return nullptr;
    const bool is_code = (found->header.sh_flags & SHF_EXECINSTR) != 0 && found->header.sh_type != SHT_NOBITS;
    return is_code ? &*found : nullptr;
  }

  // Addresses that the dynamic linker fills with a symbol's address, with its name.
  void read_slots() {
    for (const Section& section : sections_) {
      const auto type = section.header.sh_type;
      if (type != SHT_RELA && type != SHT_REL) continue;
      Elf_Scn* symbols = elf_getscn(file_.get(), section.header.sh_link);
      GElf_Shdr symbols_header;
      if (symbols == nullptr || gelf_getshdr(symbols, &symbols_header) == nullptr) continue;
      if (symbols_header.sh_type != SHT_DYNSYM) continue;
      read_relocations(section, elf_getdata(symbols, nullptr), symbols_header.sh_link);
    }
  }

  void read_relocations(const Section& section, Elf_Data* symbols, std::size_t names) {
    Elf_Data* data = elf_getdata(section.handle, nullptr);
    if (data == nullptr || symbols == nullptr) return;
    for (int i = 0;; ++i) {
      GElf_Rela entry{};
      if (section.header.sh_type == SHT_RELA) {
        if (gelf_getrela(data, i, &entry) == nullptr) return;
      } else {
        GElf_Rel without_addend;
        if (gelf_getrel(data, i, &without_addend) == nullptr) return;
        entry.r_offset = without_addend.r_offset;
        entry.r_info = without_addend.r_info;
      }
      GElf_Sym symbol;
      const auto index = GELF_R_SYM(entry.r_info);
      if (index == 0 || index > 0x7FFF'FFFF) continue;
      if (gelf_getsym(symbols, static_cast<int>(index), &symbol) == nullptr) continue;
      const char* name = elf_strptr(file_.get(), names, symbol.st_name);
      if (name == nullptr || *name == '\0') continue;
      if (!names_.take(name)) return;
      slots_.emplace(entry.r_offset, name);
    }
  }

  // Each stub jumps through its slot: JMP [slot], after ENDBR or BND in newer files.
  void read_stubs(const Section& section) {
    const base::Bytes code = file_.contents(section);
    std::uint64_t step = section.header.sh_entsize;
    if (step != 8 && step != 16) step = section.name == ".plt.got" && code.size() % 16 != 0 ? 8 : 16;
    for (std::uint64_t at = 0; at + step <= code.size(); at += step) {
      const base::Bytes stub = code.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(step));
      const auto slot = slots_.find(slot_of(stub, section.header.sh_addr + at));
      const auto offset = file_.file_offset(section.header.sh_addr + at);
      if (slot == slots_.end() || !offset) continue;
      found_.push_back({{slot->second + "@plt", *offset, step}, 0});
    }
  }

  // The address that a stub's JMP reads, or 0.
  std::uint64_t slot_of(base::Bytes stub, std::uint64_t address) const {
    for (std::size_t i = 0; i + 6 <= stub.size(); ++i) {
      if (stub[i] != 0xFF || (stub[i + 1] != 0x25 && stub[i + 1] != 0xA3)) continue;
      const std::uint64_t displacement = base::sign_extend(base::load_le<4>(&stub[i + 2]), 32);
      if (file_.header().e_machine == EM_X86_64)
        return stub[i + 1] == 0x25 ? address + i + 6 + displacement : 0;
      if (stub[i + 1] == 0x25) return displacement & 0xFFFF'FFFF;
      return (global_offsets() + displacement) & 0xFFFF'FFFF;  // position-independent: by EBX
    }
    return 0;
  }

  std::uint64_t global_offsets() const {
    std::uint64_t address = 0;
    for (const Section& section : sections_) {
      if (section.name == ".got.plt") return section.header.sh_addr;
      if (section.name == ".got") address = section.header.sh_addr;
    }
    return address;
  }

  std::vector<trace::SymbolEntry> sorted() {
    const auto key = [](const Candidate& one) {
      return std::make_tuple(one.entry.file_offset, one.rank, std::string_view(one.entry.name));
    };
    std::sort(found_.begin(), found_.end(),
              [&](const Candidate& a, const Candidate& b) { return key(a) < key(b); });
    std::vector<trace::SymbolEntry> entries;
    for (Candidate& candidate : found_) {
      // .dynsym repeats names of .symtab.
      const auto same = [&](const trace::SymbolEntry& other) {
        return other.file_offset == candidate.entry.file_offset && other.name == candidate.entry.name;
      };
      if (!entries.empty() && same(entries.back())) continue;
      entries.push_back(std::move(candidate.entry));
    }
    return entries;
  }

  const ElfFile& file_;
  std::vector<Section> sections_;
  NameBudget names_;
  std::map<std::uint64_t, std::string> slots_;
  std::vector<Candidate> found_;
};

}  // namespace

std::vector<trace::SymbolEntry> elf_symbols(base::Bytes bytes) {
  const auto file = ElfFile::open(bytes);
  return file.ok() ? Reader(file.value()).run() : std::vector<trace::SymbolEntry>{};
}

}  // namespace ptkit::image
