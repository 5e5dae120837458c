#include "code/image/elf/elf_functions.h"

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

// Real resolvers have some hundred bytes.
constexpr std::uint64_t kLongestResolver = std::uint64_t{1} << 16U;

constexpr std::uint8_t kLea = 0x8D;
constexpr std::uint8_t kMovImmediate = 0xB8;  // to EAX; up to 0xBF

std::uint64_t signed32(const std::uint8_t* at) noexcept {
  return base::sign_extend(base::load_le<4>(at), 32);
}

// The address that an instruction at the begin of some bytes takes; 0: it takes none. An LEA is relative to
// the next instruction, or in 32-bit code to the table of offsets. In a file at a fixed address, a MOV has
// it.
std::uint64_t taken_by(base::Bytes code, std::uint64_t address, bool is_64, bool is_fixed,
                       std::uint64_t offsets) noexcept {
  if (is_64 && code.size() >= 7 && (code[0] & 0xFB) == 0x48 && code[1] == kLea && (code[2] & 0xC7) == 0x05)
    return address + 7 + signed32(&code[3]);
  if (!is_64 && code.size() >= 6 && code[0] == kLea && (code[1] & 0xC0) == 0x80 && (code[1] & 0x07) != 0x04)
    return (offsets + signed32(&code[2])) & 0xFFFF'FFFF;
  if (!is_fixed) return 0;
  if (code.size() >= 5 && (code[0] & 0xF8) == kMovImmediate) return base::load_le<4>(&code[1]);
  if (is_64 && code.size() >= 7 && code[0] == 0x48 && code[1] == 0xC7 && (code[2] & 0xF8) == 0xC0)
    return signed32(&code[3]);
  return 0;
}

}  // namespace

std::vector<std::uint64_t> functions_taken_in(const ElfFile& file,
                                              const std::vector<ElfFile::Section>& sections,
                                              std::uint64_t resolver, std::uint64_t size) {
  const auto holds_code = [&](std::uint64_t address) {
    return std::ranges::any_of(sections, [&](const ElfFile::Section& section) {
      return (section.header.sh_flags & SHF_EXECINSTR) != 0 && ElfFile::stub_bytes(section) == 0 &&
             address >= section.header.sh_addr && address - section.header.sh_addr < section.header.sh_size;
    });
  };
  std::vector<std::uint64_t> taken;
  const auto offset = file.file_offset(resolver);
  if (!offset || *offset >= file.bytes().size()) return taken;
  const base::Bytes code = file.bytes().subspan(
      static_cast<std::size_t>(*offset),
      static_cast<std::size_t>(std::min({size, kLongestResolver, file.bytes().size() - *offset})));
  const std::uint64_t offsets = ElfFile::global_offsets(sections).value_or(0);
  const bool is_64 = file.header().e_machine == EM_X86_64;
  const bool is_fixed = file.header().e_type == ET_EXEC;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const std::uint64_t found = taken_by(code.subspan(at), resolver + at, is_64, is_fixed, offsets);
    const bool is_own = found - resolver < size;
    if (found != 0 && !is_own && holds_code(found)) taken.push_back(found);
  }
  std::ranges::sort(taken);
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  return taken;
}

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
