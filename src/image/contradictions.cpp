#include "image/contradictions.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/addresses.h"
#include "base/hexadecimal.h"
#include "image/elf_file.h"
#include "image/pe.h"
#include "image/pe_file.h"

namespace ptkit::image {

namespace {

// Pages of a file that a loader maps for a segment of an ELF file or a section of a PE file.
struct Pages {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // of the bytes in the file
  std::uint64_t most =
      0;  // a mapping from `begin` on may end here: it takes the room of what is mapped later
  bool executable = false;
};

std::uint64_t page_of(std::uint64_t offset) noexcept { return offset & ~base::kOffsetInPage; }

// Saturates at the last page: headers may have any numbers.
std::uint64_t page_after(std::uint64_t begin, std::uint64_t size) noexcept {
  constexpr std::uint64_t kLastPage = ~base::kOffsetInPage;
  if (size >= kLastPage - std::min(begin, kLastPage)) return kLastPage;
  return page_of(begin + size + base::kOffsetInPage);
}

// Loaders of Linux map the lowest segment with the size of the whole program, and the others over it.
std::vector<Pages> pages_of(const ElfFile& file) {
  std::uint64_t lowest = ~std::uint64_t{0};
  std::uint64_t highest = 0;
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD) continue;
    lowest = std::min(lowest, page_of(segment.p_vaddr));
    highest = std::max(highest, page_after(segment.p_vaddr, segment.p_memsz));
  }
  std::vector<Pages> pages;
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
    Pages one{page_of(segment.p_offset), page_after(segment.p_offset, segment.p_filesz),
              page_after(segment.p_offset, segment.p_memsz), (segment.p_flags & PF_X) != 0};
    if (page_of(segment.p_vaddr) == lowest)
      one.most = std::max(one.most, page_after(one.begin, highest - lowest));
    pages.push_back(one);
  }
  return pages;
}

std::vector<Pages> pages_of(const PeFile& file) {
  std::vector<Pages> pages;
  for (const PeFile::Section& section : file.sections()) {
    if (section.file_size == 0) continue;
    pages.push_back({page_of(section.offset), page_after(section.offset, section.file_size),
                     page_after(section.offset, section.size), section.executable});
  }
  return pages;
}

// Empty: the file is neither ELF nor PE, or its headers are not worth the time.
std::vector<Pages> pages_of(base::Bytes file) {
  constexpr std::size_t kMostPages = 1000;
  std::vector<Pages> all;
  if (is_pe(file)) {
    const auto pe = PeFile::open(file);
    if (pe.ok()) all = pages_of(pe.value());
  } else {
    const auto elf = ElfFile::open(file);
    if (elf.ok()) all = pages_of(elf.value());
  }
  if (all.size() > kMostPages) all.clear();
  return all;
}

std::uint64_t end_of(const FileMapping& mapping) noexcept { return page_after(mapping.offset, mapping.size); }

bool begins(const FileMapping& mapping, const Pages& pages) noexcept {
  return page_of(mapping.offset) == pages.begin;
}

bool fits(const FileMapping& mapping, const Pages& pages) noexcept {
  if (mapping.offset < pages.begin || mapping.offset >= pages.end) return false;
  return end_of(mapping) <= (begins(mapping, pages) ? std::max(pages.end, pages.most) : pages.end);
}

std::string text_of(std::uint64_t begin, std::uint64_t end) {
  return "[" + base::hexadecimal(begin) + ", " + base::hexadecimal(end) + ")";
}

std::string text_of(const FileMapping& mapping) {
  if (mapping.size == 0) return "offset " + base::hexadecimal(mapping.offset);
  return text_of(mapping.offset, mapping.offset + std::min(mapping.size, ~mapping.offset));
}

std::string code_of(const std::vector<Pages>& all) {
  std::string text;
  for (const Pages& pages : all) {
    if (pages.executable) text += (text.empty() ? "" : ", ") + text_of(pages.begin, pages.end);
  }
  return text.empty() ? "none" : text;
}

// A loader maps a segment whole, and nothing but anonymous code takes a part of it away later.
bool is_whole(const Pages& pages, std::span<const FileMapping> mappings) {
  bool from_begin = false;
  bool to_end = false;
  bool any = false;
  for (const FileMapping& mapping : mappings) {
    if (!fits(mapping, pages)) continue;
    any = true;
    from_begin = from_begin || begins(mapping, pages) || mapping.is_preceded;
    to_end = to_end || mapping.size == 0 || end_of(mapping) >= pages.end || mapping.is_followed;
  }
  return !any || (from_begin && to_end);
}

}  // namespace

std::string other_machine(base::Bytes file) {
  constexpr std::size_t kMachineAt = 18;
  if (file.size() >= kMachineAt + 2 && std::memcmp(file.data(), ELFMAG, SELFMAG) == 0) {
    const bool is_little = file[EI_DATA] != ELFDATA2MSB;
    const unsigned low = file[is_little ? kMachineAt : kMachineAt + 1];
    const unsigned machine = low | unsigned{file[is_little ? kMachineAt + 1 : kMachineAt]} << 8U;
    if (is_little && (machine == EM_X86_64 || machine == EM_386)) return {};
    return "is an ELF file for machine " + std::to_string(machine) + ", not for x86";
  }
  if (!is_pe(file)) return {};
  const std::size_t machine_at = base::load_le<4>(file.data() + 0x3c) + std::size_t{4};
  constexpr std::uint64_t kX64 = 0x8664;
  constexpr std::uint64_t kX86 = 0x14c;
  if (file.size() - machine_at < 2) return {};
  const std::uint64_t machine = base::load_le<2>(file.data() + machine_at);
  if (machine == kX64 || machine == kX86) return {};
  return "is a PE file for machine " + base::hexadecimal(machine) + ", not for x86";
}

std::string mapping_contradiction(base::Bytes file, std::span<const FileMapping> mappings) {
  constexpr std::size_t kMostMappings = 1000;
  const std::vector<Pages> all = pages_of(file);
  mappings = mappings.first(std::min(mappings.size(), kMostMappings));
  if (all.empty() || mappings.empty()) return {};
  bool is_code = false;
  for (const FileMapping& mapping : mappings) {
    bool is_mapped = false;
    for (const Pages& pages : all) {
      if (!fits(mapping, pages)) continue;
      is_mapped = true;
      is_code = is_code || pages.executable;
    }
    if (!is_mapped) return "has code at " + code_of(all) + ", the recording at " + text_of(mapping);
  }
  // Data may be executable, too (READ_IMPLIES_EXEC, mprotect()), but not alone.
  const auto is_part = [&](const Pages& pages) { return pages.executable && !is_whole(pages, mappings); };
  if (is_code && std::ranges::none_of(all, is_part)) return {};
  return "has code at " + code_of(all) + ", the recording at " + text_of(mappings.front());
}

}  // namespace ptkit::image
