// Generates small ELF files of both classes, so that the tests need no compiler.
#pragma once

#include <elf.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace ptkit::test {

using ByteVector = std::vector<std::uint8_t>;

struct ElfSegment {
  std::uint32_t type = PT_LOAD;
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
  std::uint64_t file_size = 0;
  std::uint64_t memory_size = 0;
  std::uint64_t alignment = 0x1000;
  std::uint32_t flags = PF_R | PF_X;
};

struct ElfSection {
  std::string name;
  std::uint32_t type = SHT_PROGBITS;
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  ByteVector contents;
  std::uint32_t link = 0;
  std::uint64_t entry_size = 0;
  std::uint64_t offset = 0;  // filled in by the maker
};

struct ElfSymbol {
  std::string name;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
  unsigned char type = STT_FUNC;
  unsigned char binding = STB_GLOBAL;
  std::uint16_t section = 1;
};

// Fields of the two classes have the same names; only their widths and order differ.
struct Elf32Types {
  using Header = Elf32_Ehdr;
  using Segment = Elf32_Phdr;
  using Section = Elf32_Shdr;
  using Symbol = Elf32_Sym;
  static constexpr unsigned char kClass = ELFCLASS32;
};
struct Elf64Types {
  using Header = Elf64_Ehdr;
  using Segment = Elf64_Phdr;
  using Section = Elf64_Shdr;
  using Symbol = Elf64_Sym;
  static constexpr unsigned char kClass = ELFCLASS64;
};

template <typename T>
void append(ByteVector& bytes, const T& value) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

template <typename Types>
class ElfMaker {
 public:
  std::uint16_t type = ET_EXEC;
  std::uint16_t machine = Types::kClass == ELFCLASS64 ? EM_X86_64 : EM_386;
  std::vector<ElfSegment> segments;  // offsets count from the file's start
  std::vector<ElfSection> sections;  // their contents are laid out from kContents on, in order

  static constexpr std::uint64_t kContents = 0x200;

  // Index of the section among all (0 is the null section).
  std::uint16_t add(ElfSection section) {
    section.offset = next_;
    next_ += section.contents.size();
    next_ = (next_ + 15) / 16 * 16;
    sections.push_back(std::move(section));
    return static_cast<std::uint16_t>(sections.size());
  }

  // A symbol table (SHT_SYMTAB or SHT_DYNSYM) with its string table.
  std::uint16_t add_symbols(std::uint32_t table_type, const std::vector<ElfSymbol>& symbols) {
    ByteVector table(sizeof(typename Types::Symbol));
    ByteVector names(1);
    for (const ElfSymbol& from : symbols) {
      typename Types::Symbol symbol{};
      assign(symbol.st_name, names.size());
      names.insert(names.end(), from.name.begin(), from.name.end());
      names.push_back(0);
      assign(symbol.st_value, from.value);
      assign(symbol.st_size, from.size);
      symbol.st_info = static_cast<unsigned char>(from.binding << 4 | from.type);
      symbol.st_shndx = from.section;
      append(table, symbol);
    }
    const auto strings = add({".names", SHT_STRTAB, 0, 0, names, 0, 0, 0});
    return add({".symbols", table_type, 0, 0, table, strings, sizeof(typename Types::Symbol), 0});
  }

  ByteVector make() {
    ByteVector names(1);
    std::vector<std::size_t> name_at;
    for (const ElfSection& section : sections) name_at.push_back(append_name(names, section.name));
    name_at.push_back(append_name(names, ".shstrtab"));
    add({".shstrtab", SHT_STRTAB, 0, 0, names, 0, 0, 0});

    ByteVector file;
    append(file, header());
    for (const ElfSegment& segment : segments) append(file, convert(segment));
    file.resize(kContents);
    for (const ElfSection& section : sections) {
      file.resize(section.offset);
      file.insert(file.end(), section.contents.begin(), section.contents.end());
    }
    file.resize(next_);
    append(file, typename Types::Section{});
    for (std::size_t i = 0; i < sections.size(); ++i) append(file, convert(sections[i], name_at[i]));
    return file;
  }

 private:
  template <typename Field>
  static void assign(Field& field, std::uint64_t value) {
    field = static_cast<Field>(value);
  }

  static std::size_t append_name(ByteVector& names, const std::string& name) {
    const std::size_t at = names.size();
    names.insert(names.end(), name.begin(), name.end());
    names.push_back(0);
    return at;
  }

  typename Types::Header header() const {
    typename Types::Header made{};
    std::memcpy(made.e_ident, ELFMAG, SELFMAG);
    made.e_ident[EI_CLASS] = Types::kClass;
    made.e_ident[EI_DATA] = ELFDATA2LSB;
    made.e_ident[EI_VERSION] = EV_CURRENT;
    made.e_type = type;
    made.e_machine = machine;
    made.e_version = EV_CURRENT;
    assign(made.e_phoff, segments.empty() ? 0 : sizeof made);
    assign(made.e_shoff, next_);
    assign(made.e_ehsize, sizeof made);
    assign(made.e_phentsize, sizeof(typename Types::Segment));
    assign(made.e_phnum, segments.size());
    assign(made.e_shentsize, sizeof(typename Types::Section));
    assign(made.e_shnum, sections.size() + 1);
    assign(made.e_shstrndx, sections.size());
    return made;
  }

  static typename Types::Segment convert(const ElfSegment& from) {
    typename Types::Segment made{};
    made.p_type = from.type;
    made.p_flags = from.flags;
    assign(made.p_offset, from.offset);
    assign(made.p_vaddr, from.address);
    assign(made.p_filesz, from.file_size);
    assign(made.p_memsz, from.memory_size != 0 ? from.memory_size : from.file_size);
    assign(made.p_align, from.alignment);
    return made;
  }

  static typename Types::Section convert(const ElfSection& from, std::size_t name) {
    typename Types::Section made{};
    assign(made.sh_name, name);
    made.sh_type = from.type;
    assign(made.sh_flags, from.flags);
    assign(made.sh_addr, from.address);
    assign(made.sh_offset, from.offset);
    assign(made.sh_size, from.contents.size());
    made.sh_link = from.link;
    assign(made.sh_addralign, 1);
    assign(made.sh_entsize, from.entry_size);
    return made;
  }

  std::uint64_t next_ = kContents;
};

inline ByteVector build_id_note(const ByteVector& id) {
  ByteVector note;
  append(note, Elf64_Nhdr{4, static_cast<Elf64_Word>(id.size()), NT_GNU_BUILD_ID});
  for (const char letter : {'G', 'N', 'U', '\0'}) note.push_back(static_cast<std::uint8_t>(letter));
  note.insert(note.end(), id.begin(), id.end());
  return note;
}

using Elf32Maker = ElfMaker<Elf32Types>;
using Elf64Maker = ElfMaker<Elf64Types>;

// A temporary file, removed at the end of the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(base::Bytes contents) {
    std::string pattern = (std::filesystem::temp_directory_path() / "ptkit-test-XXXXXX").string();
    const int fd = ::mkstemp(pattern.data());
    if (fd >= 0) ::close(fd);
    path_ = pattern;
    std::ofstream stream(path_, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(contents.data()),
                 static_cast<std::streamsize>(contents.size()));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ptkit::test
