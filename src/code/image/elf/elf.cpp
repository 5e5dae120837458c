#include "code/image/elf/elf.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <limits>

#include "base/addresses.h"
#include "base/hexadecimal.h"
#include "code/image/elf/elf_file.h"

namespace ptkit::code::image {
namespace {

// The first GNU build-id among notes, as hex. Zeros alone identify nothing.
std::string build_id_in(Elf_Data* notes) {
  if (notes == nullptr || notes->d_buf == nullptr) return {};
  GElf_Nhdr note;
  std::size_t name = 0;
  std::size_t description = 0;
  for (std::size_t at = 0; (at = gelf_getnote(notes, at, &note, &name, &description)) != 0;) {
    const auto* bytes = static_cast<const std::uint8_t*>(notes->d_buf);
    const bool is_gnu = note.n_namesz == sizeof "GNU" && std::memcmp(bytes + name, "GNU", sizeof "GNU") == 0;
    if (note.n_type != NT_GNU_BUILD_ID || !is_gnu) continue;
    const base::Bytes id(bytes + description, note.n_descsz);
    const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
    return std::ranges::all_of(id, is_zero) ? std::string() : build_id_text(id);
  }
  return {};
}

Elf_Data* notes_at(const ElfFile& file, std::uint64_t offset, std::uint64_t size, std::uint64_t alignment) {
  if (offset > file.bytes().size() || size > file.bytes().size() - offset) return nullptr;
  const Elf_Type type = alignment == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
  return elf_getdata_rawchunk(file.get(), static_cast<std::int64_t>(offset), static_cast<std::size_t>(size),
                              type);
}

std::string build_id_of(const ElfFile& file) {
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_NOTE) continue;
    std::string id = build_id_in(notes_at(file, segment.p_offset, segment.p_filesz, segment.p_align));
    if (!id.empty()) return id;
  }
  for (const ElfFile::Section& section : file.sections()) {  // object files have no segments
    if (section.header.sh_type != SHT_NOTE) continue;
    const GElf_Shdr& header = section.header;
    std::string id = build_id_in(notes_at(file, header.sh_offset, header.sh_size, header.sh_addralign));
    if (!id.empty()) return id;
  }
  return {};
}

// Describes what is wrong with a loadable segment; empty if nothing is.
std::string problem_of(const GElf_Phdr& segment, std::size_t file_size) {
  if (segment.p_offset > file_size || segment.p_filesz > file_size - segment.p_offset) {
    return "takes " + base::hexadecimal(segment.p_filesz) + " bytes at offset " +
           base::hexadecimal(segment.p_offset) + " of a file of " + base::hexadecimal(file_size) + " bytes";
  }
  if (segment.p_filesz > segment.p_memsz) {
    return "has " + base::hexadecimal(segment.p_filesz) + " bytes in the file and only " +
           base::hexadecimal(segment.p_memsz) + " in memory";
  }
  if (segment.p_filesz != 0 && segment.p_vaddr + (segment.p_filesz - 1) < segment.p_vaddr) {
    return "at " + base::hexadecimal(segment.p_vaddr) + " reaches beyond the end of the address space";
  }
  return {};
}

// The loadable segments with bytes in the file, or a failure.
base::Result<std::vector<GElf_Phdr>> loadable(const ElfFile& file) {
  std::vector<GElf_Phdr> found;
  for (std::size_t i = 0; i < file.segments().size(); ++i) {
    const GElf_Phdr& segment = file.segments()[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::string problem = problem_of(segment, file.bytes().size());
    if (!problem.empty()) {
      return base::Failure{base::Status::BAD_FILE, segment.p_offset,
                           "segment " + std::to_string(i) + " " + problem + " (is the file cut?)"};
    }
    if (segment.p_filesz != 0) found.push_back(segment);
  }
  if (found.empty()) {
    return base::Failure{
        base::Status::BAD_FILE, file.header().e_phoff,
        "no loadable segment has bytes in the file (an object file, or debug symbols alone?)"};
  }
  return found;
}

// The load bias: the difference of run-time and linked addresses. The lowest segment may begin inside a page;
// its whole page was mapped.
std::uint64_t bias_of(const ElfFile& file, const Placement& placement) noexcept {
  if (!placement.load_address) return 0;
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type == PT_LOAD) lowest = std::min(lowest, segment.p_vaddr);
  }
  if ((*placement.load_address & base::kOffsetInPage) == 0) lowest &= ~base::kOffsetInPage;
  return *placement.load_address - lowest;
}

}  // namespace

base::Result<std::int32_t> add_elf(trace::TraceBundle& bundle, const std::string& path,
                                   const Placement& placement) {
  auto contents = trace::TraceBuffer::map_file(path);
  if (!contents.ok()) return contents.failure();
  const auto in_file = [&path](base::Failure failure) {
    failure.detail = path + ": " + failure.detail;
    return failure;
  };
  const auto file = ElfFile::open(contents.value().bytes());
  if (!file.ok()) return in_file(file.failure());
  const auto segments = loadable(file.value());
  if (!segments.ok()) return in_file(segments.failure());

  const auto index = static_cast<std::int32_t>(bundle.files.size());
  const std::uint64_t bias = bias_of(file.value(), placement);
  bundle.files.push_back({path, build_id_of(file.value()), contents.value(), {}});
  for (const GElf_Phdr& segment : segments.value()) {
    trace::CodeRegion region;
    region.space = placement.space;
    region.address = segment.p_vaddr + bias;
    region.bytes = contents.value().slice(static_cast<std::size_t>(segment.p_offset),
                                          static_cast<std::size_t>(segment.p_filesz));
    region.size = segment.p_filesz;
    region.tsc_from = placement.tsc_from;
    region.tsc_to = placement.tsc_to;
    region.file = index;
    region.file_offset = segment.p_offset;
    bundle.code.push_back(std::move(region));
  }
  return index;
}

std::string build_id_text(base::Bytes id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : id) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

bool is_debug_only(base::Bytes file) {
  const auto opened = ElfFile::open(file);
  if (!opened.ok()) return false;
  bool any = false;
  for (const ElfFile::Section& section : opened.value().sections()) {
    if ((section.header.sh_flags & SHF_EXECINSTR) == 0) continue;
    if (section.header.sh_type != SHT_NOBITS) return false;
    any = true;
  }
  return any;
}

std::string elf_build_id(base::Bytes bytes) {
  const auto file = ElfFile::open(bytes);
  return file.ok() ? build_id_of(file.value()) : std::string{};
}

}  // namespace ptkit::code::image
