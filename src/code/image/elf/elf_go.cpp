#include "code/image/elf/elf_go.h"

#include <algorithm>

namespace ptkit::code::image {
namespace {

using Section = ElfFile::Section;

bool is_of_go(const Section& section) {
  constexpr std::string_view kNames[] = {".gopclntab", ".data.rel.ro.gopclntab", ".go.buildinfo",
                                         ".note.go.buildid"};
  return std::ranges::find(kNames, section.name) != std::ranges::end(kNames);
}

base::Bytes bytes_of(const ElfFile& file, const GElf_Phdr& segment) {
  const base::Bytes all = file.bytes();
  if (segment.p_offset > all.size()) return {};
  const base::Bytes rest = all.subspan(static_cast<std::size_t>(segment.p_offset));
  return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(segment.p_filesz, rest.size())));
}

// The relocations with addends that the dynamic section names. Others have the addend in the field that they
// change.
base::Bytes relocations_of(const ElfFile& file) {
  constexpr std::size_t kEntry = sizeof(Elf64_Dyn);
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_DYNAMIC) continue;
    const base::Bytes dynamic = bytes_of(file, segment);
    for (std::size_t at = 0; at + kEntry <= dynamic.size(); at += kEntry) {
      const std::uint64_t tag = base::load_le<8>(dynamic.data() + at);
      const std::uint64_t value = base::load_le<8>(dynamic.data() + at + 8);
      if (tag == DT_RELA) address = value;
      if (tag == DT_RELASZ) size = value;
    }
  }
  const auto offset = file.file_offset(address);
  if (size == 0 || !offset || size > file.bytes().size() - *offset) return {};
  return file.bytes().subspan(static_cast<std::size_t>(*offset), static_cast<std::size_t>(size));
}

// Pointers into the program, from the relocations of position-independent programs of 64 bits.
void read_pointers(const ElfFile& file, LoadedProgram& program) {
  constexpr std::size_t kEntry = sizeof(Elf64_Rela);
  if (!program.is_64_bit || file.header().e_type != ET_DYN) return;
  const base::Bytes rows = relocations_of(file);
  for (std::size_t at = 0; at + kEntry <= rows.size(); at += kEntry) {
    const std::uint8_t* const row = rows.data() + at;
    if (ELF64_R_TYPE(base::load_le<8>(row + 8)) == R_X86_64_RELATIVE)
      program.pointers.emplace_back(base::load_le<8>(row), base::load_le<8>(row + 16));
  }
  std::ranges::sort(program.pointers);
}

}  // namespace

std::vector<GoFunction> go_functions(const ElfFile& file) {
  if (file.header().e_type == ET_REL) return {};
  LoadedProgram program;
  program.is_64_bit = file.header().e_ident[EI_CLASS] == ELFCLASS64;
  const std::vector<Section> sections = file.sections();
  if (!sections.empty() && std::ranges::none_of(sections, is_of_go)) return {};
  for (const Section& section : sections) {
    const base::Bytes bytes = file.contents(section);
    if ((section.header.sh_flags & SHF_ALLOC) == 0 || bytes.empty()) continue;
    program.parts.push_back({section.name, section.header.sh_addr, section.header.sh_offset, bytes,
                             (section.header.sh_flags & SHF_EXECINSTR) != 0});
  }
  for (const GElf_Phdr& segment : file.segments()) {
    if (!sections.empty() || segment.p_type != PT_LOAD) continue;
    program.parts.push_back(
        {{}, segment.p_vaddr, segment.p_offset, bytes_of(file, segment), (segment.p_flags & PF_X) != 0});
  }
  std::ranges::stable_sort(program.parts, {}, &LoadedPart::address);
  read_pointers(file, program);
  return read_go_functions(program);
}

}  // namespace ptkit::code::image
