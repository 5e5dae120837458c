#include "code/image/elf/debug_sections.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "code/image/elf/elf_file.h"

namespace ptkit::code::image {
namespace {

using Section = ElfFile::Section;

constexpr std::array<std::string_view, 10> kKept{
    "debug_abbrev", "debug_addr",     "debug_info", "debug_line",        "debug_line_str",
    "debug_ranges", "debug_rnglists", "debug_str",  "debug_str_offsets", "debug_types"};
constexpr std::size_t kAlignment = 8;

// The name without the dot, and without the z of sections that are compressed in the old way.
bool is_kept(const Section& section) {
  std::string_view name = section.name;
  name.remove_prefix(name.starts_with(".z") ? 2 : std::min<std::size_t>(name.size(), 1));
  return std::ranges::find(kKept, name) != kKept.end();
}

template <typename Target, typename Source>
void assign(Target& target, Source value) {
  target = static_cast<Target>(value);
}

struct Contents {
  std::string name;
  GElf_Shdr like{};
  base::Bytes bytes;
};

// Writes a file of 32 or of 64 bits.
template <typename FileHeader, typename SegmentHeader, typename SectionHeader>
class Writer {
 public:
  std::string write(const ElfFile& file, const std::vector<Contents>& kept) {
    FileHeader header{};
    out_.resize(sizeof header);
    assign(header.e_phoff, out_.size());
    for (const GElf_Phdr& segment : file.segments()) add_segment(segment);
    names_.push_back('\0');
    headers_.emplace_back();
    for (const Contents& one : kept) add(one.name, one.like, one.bytes);
    add_names(header);
    describe(file, header);
    align();
    assign(header.e_shoff, out_.size());
    for (const SectionHeader& one : headers_) append(one);
    std::memcpy(out_.data(), &header, sizeof header);
    return std::move(out_);
  }

 private:
  template <typename T>
  void append(const T& value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void align() { out_.resize((out_.size() + kAlignment - 1) / kAlignment * kAlignment); }

  void add_segment(const GElf_Phdr& segment) {
    SegmentHeader header{};
    assign(header.p_type, segment.p_type);
    assign(header.p_flags, segment.p_flags);
    assign(header.p_vaddr, segment.p_vaddr);
    assign(header.p_memsz, segment.p_memsz);
    assign(header.p_align, segment.p_align);
    append(header);
  }

  void add(const std::string& name, const GElf_Shdr& like, base::Bytes contents) {
    align();
    SectionHeader& header = headers_.emplace_back();
    assign(header.sh_name, names_.size());
    assign(header.sh_type, like.sh_type);
    assign(header.sh_flags, like.sh_flags);
    assign(header.sh_addralign, like.sh_addralign);
    assign(header.sh_entsize, like.sh_entsize);
    assign(header.sh_offset, out_.size());
    assign(header.sh_size, contents.size());
    out_.append(reinterpret_cast<const char*>(contents.data()), contents.size());
    names_ += name;
    names_.push_back('\0');
  }

  void add_names(FileHeader& header) {
    assign(header.e_shstrndx, headers_.size());
    GElf_Shdr like{};
    like.sh_type = SHT_STRTAB;
    like.sh_addralign = 1;
    const std::string names = names_ + ".shstrtab" + '\0';
    add(".shstrtab", like, {reinterpret_cast<const std::uint8_t*>(names.data()), names.size()});
  }

  void describe(const ElfFile& file, FileHeader& header) const {
    const GElf_Ehdr& like = file.header();
    std::memcpy(header.e_ident, like.e_ident, sizeof header.e_ident);
    header.e_type = like.e_type;
    header.e_machine = like.e_machine;
    header.e_version = like.e_version;
    assign(header.e_ehsize, sizeof header);
    assign(header.e_phentsize, sizeof(SegmentHeader));
    assign(header.e_phnum, file.segments().size());
    assign(header.e_shentsize, sizeof(SectionHeader));
    assign(header.e_shnum, headers_.size());
  }

  std::string out_;
  std::string names_;
  std::vector<SectionHeader> headers_;
};

std::string written(const ElfFile& file, const std::vector<Contents>& sections) {
  if (file.header().e_ident[EI_CLASS] == ELFCLASS32)
    return Writer<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr>().write(file, sections);
  return Writer<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr>().write(file, sections);
}

}  // namespace

std::string elf_of_sections(base::Bytes like, const std::vector<NamedSection>& sections) {
  const auto file = ElfFile::open(like);
  if (!file.ok() || file.value().segments().size() >= PN_XNUM) return {};
  std::vector<Contents> all;
  for (const NamedSection& one : sections) {
    GElf_Shdr header{};
    header.sh_type = SHT_PROGBITS;
    header.sh_addralign = 1;
    all.push_back({one.name, header, one.contents});
  }
  return written(file.value(), all);
}

std::string debug_sections(base::Bytes bytes) {
  const auto opened = ElfFile::open(bytes);
  if (!opened.ok()) return {};
  const ElfFile& file = opened.value();
  if (file.header().e_type != ET_EXEC && file.header().e_type != ET_DYN) return {};
  if (file.segments().size() >= PN_XNUM) return {};
  std::vector<Contents> kept;
  for (const Section& section : file.sections()) {
    if (section.name == ".gnu_debugaltlink") return {};
    const base::Bytes contents = file.contents(section);
    if (is_kept(section) && !contents.empty()) kept.push_back({section.name, section.header, contents});
  }
  // Without units or their lines, the rest says nothing. No file has a section of debug information twice.
  const bool has_lines =
      std::ranges::any_of(kept, [](const Contents& one) { return one.name.ends_with("debug_line"); });
  if (!has_lines || kept.size() > kKept.size()) return {};
  return written(file, kept);
}

}  // namespace ptkit::code::image
