// Writes ELF files for perf: code at its original offsets, symbols, and the build-id by which perf finds the
// file.
#include <elf.h>

#include "formats/perf_export/code.h"
#include "formats/perf_export/output.h"

namespace ptkit::formats::perf {

namespace {

// Structures of 32-bit and 64-bit files.
struct Elf32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Segment = Elf32_Phdr;
  using Symbol = Elf32_Sym;
  static constexpr unsigned char kClass = ELFCLASS32;
  static constexpr Elf32_Half kMachine = EM_386;
};
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Segment = Elf64_Phdr;
  using Symbol = Elf64_Sym;
  static constexpr unsigned char kClass = ELFCLASS64;
  static constexpr Elf64_Half kMachine = EM_X86_64;
};

constexpr unsigned kTextSection = 1;

template <typename T>
base::Bytes bytes_of(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}
template <typename T>
base::Bytes bytes_of_all(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

std::vector<std::uint8_t> note_of(const std::string& build_id) {
  std::vector<std::uint8_t> note{
      4,   0,   0,   0, static_cast<std::uint8_t>(build_id.size() / 2), 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0,
      'G', 'N', 'U', 0};
  const std::vector<std::uint8_t> id = bytes_of_hex(build_id);
  note.insert(note.end(), id.begin(), id.end());
  while (note.size() % 4 != 0) note.push_back(0);
  return note;
}

// Addresses are file offsets: perf converts addresses to file offsets anyway.
template <typename Elf>
class ElfWriter {
 public:
  ElfWriter(const CodeFile& file, Output& out) : file_(file), out_(out) {}

  void write() {
    std::uint64_t first = ~std::uint64_t{0};
    const auto put = [&](std::uint64_t offset, base::Bytes bytes) {
      first = std::min(first, offset);
      out_.skip_to(offset);
      out_.put(bytes);
    };
    for (const auto& [offset, bytes] : file_.parts) put(offset, bytes);
    if (!file_.jit.empty()) put(JitElf::kFirstOffset, file_.jit);
    out_.skip_to(sizeof(typename Elf::Header));
    first = std::min(first, out_.size());
    sections_.push_back({});
    describe(".text", SHT_PROGBITS, first, out_.size() - first);
    sections_.back().sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    sections_.back().sh_addr = sections_.back().sh_offset;
    add(".note.gnu.build-id", SHT_NOTE, note_of(file_.build_id));
    add_symbols();
    const auto names = static_cast<std::uint32_t>(names_.size());
    names_ += std::string(".shstrtab") + '\0';
    describe_at(names, SHT_STRTAB,
                put_aligned({reinterpret_cast<const std::uint8_t*>(names_.data()), names_.size()}),
                names_.size());
    const std::uint64_t sections_at = put_aligned(bytes_of_all(sections_));
    write_head(sections_at, put_aligned(bytes_of(segment())));
  }

 private:
  using Section = typename Elf::Section;
  using Symbol = typename Elf::Symbol;

  std::uint64_t put_aligned(base::Bytes bytes) {
    out_.skip_to((out_.size() + 7) / 8 * 8);
    const std::uint64_t at = out_.size();
    out_.put(bytes);
    return at;
  }
  void describe_at(std::uint32_t name, std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
    Section section{};
    section.sh_name = name;
    section.sh_type = type;
    section.sh_offset = static_cast<decltype(section.sh_offset)>(offset);
    section.sh_size = static_cast<decltype(section.sh_size)>(size);
    section.sh_addralign = 4;
    sections_.push_back(section);
  }
  void describe(const char* name, std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
    const auto at = static_cast<std::uint32_t>(names_.size());
    names_ += std::string(name) + '\0';
    describe_at(at, type, offset, size);
  }
  void add(const char* name, std::uint32_t type, base::Bytes bytes) {
    describe(name, type, put_aligned(bytes), bytes.size());
  }

  void add_symbols() {
    std::vector<Symbol> symbols(1);
    std::string names(1, '\0');
    for (const trace::SymbolEntry& from : file_.symbols) {
      if (from.name.empty()) continue;
      Symbol symbol{};
      symbol.st_name = static_cast<std::uint32_t>(names.size());
      symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      symbol.st_shndx = kTextSection;
      symbol.st_value = static_cast<decltype(symbol.st_value)>(from.file_offset);
      symbol.st_size = static_cast<decltype(symbol.st_size)>(from.size);
      symbols.push_back(symbol);
      names += from.name.substr(0, from.name.find('\0')) + '\0';
    }
    add(".symtab", SHT_SYMTAB, bytes_of_all(symbols));
    Section& table = sections_.back();
    table.sh_link = static_cast<std::uint32_t>(sections_.size());
    table.sh_info = 1;  // all but the first one are global
    table.sh_entsize = sizeof(Symbol);
    add(".strtab", SHT_STRTAB, {reinterpret_cast<const std::uint8_t*>(names.data()), names.size()});
  }

  [[nodiscard]] typename Elf::Segment segment() const {
    const Section& text = sections_[kTextSection];
    typename Elf::Segment segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | PF_X;
    segment.p_offset = text.sh_offset;
    segment.p_vaddr = text.sh_addr;
    segment.p_filesz = segment.p_memsz = text.sh_size;
    return segment;
  }

  void write_head(std::uint64_t sections_at, std::uint64_t segment_at) {
    typename Elf::Header head{};
    const unsigned char ident[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, Elf::kClass, ELFDATA2LSB, EV_CURRENT};
    std::copy(std::begin(ident), std::end(ident), head.e_ident);
    head.e_type = ET_DYN;
    head.e_machine = Elf::kMachine;
    head.e_version = EV_CURRENT;
    head.e_shoff = static_cast<decltype(head.e_shoff)>(sections_at);
    head.e_phoff = static_cast<decltype(head.e_phoff)>(segment_at);
    head.e_phentsize = sizeof(typename Elf::Segment);
    head.e_phnum = 1;
    head.e_ehsize = sizeof head;
    head.e_shentsize = sizeof(Section);
    head.e_shnum = static_cast<std::uint16_t>(sections_.size());
    head.e_shstrndx = static_cast<std::uint16_t>(sections_.size() - 1);
    out_.put_at(0, bytes_of(head));
  }

  const CodeFile& file_;
  Output& out_;
  std::string names_ = std::string(1, '\0');
  std::vector<Section> sections_;
};

std::optional<base::Failure> write_file(const CodeFile& file, const std::string& path) {
  auto out = Output::create(path);
  if (!out.ok()) return out.failure();
  if (file.contents.size() != 0)
    out.value().put(file.contents.bytes());
  else if (file.is_32)
    ElfWriter<Elf32>(file, out.value()).write();
  else
    ElfWriter<Elf64>(file, out.value()).write();
  return out.value().keep();
}

}  // namespace

std::optional<base::Failure> write_code_folder(const std::vector<CodeFile>& files,
                                               const std::string& folder) {
  for (const CodeFile& file : files) {
    if (!file.is_written || file.build_id.size() < 4) continue;
    std::string path = folder;
    for (const std::string& name :
         {std::string(".build-id"), file.build_id.substr(0, 2), file.build_id.substr(2)}) {
      path += '/' + name;
      if (auto failure = base::create_subfolder(path)) return failure;
    }
    const char* const name = file.path == "[vdso]" ? "/vdso" : "/elf";
    if (auto failure = write_file(file, path + name)) return failure;
  }
  return std::nullopt;
}

}  // namespace ptkit::formats::perf
