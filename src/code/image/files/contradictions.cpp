#include "code/image/files/contradictions.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/addresses.h"
#include "base/hexadecimal.h"
#include "code/image/elf/elf_file.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_file.h"

namespace ptkit::code::image {

namespace {

// Pages of a file that a loader maps for a segment of an ELF file or a section of a PE file.
struct Pages {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // of the bytes in the file
  std::uint64_t most =
      0;  // a mapping from `begin` on may end here: it takes the room of what is mapped later
  bool executable = false;
  std::uint64_t delta = 0;  // from a page's offset in the file to its linked address
};

std::uint64_t page_of(std::uint64_t offset) noexcept { return offset & ~base::kOffsetInPage; }

// Saturates at the last page: headers may have any numbers.
std::uint64_t page_after(std::uint64_t begin, std::uint64_t size) noexcept {
  constexpr std::uint64_t kLastPage = ~base::kOffsetInPage;
  if (size >= kLastPage - std::min(begin, kLastPage)) return kLastPage;
  return page_of(begin + size + base::kOffsetInPage);
}

// Loaders of Linux map the lowest segment with the size of the whole program, and the others over it.
// Writers of JIT code to files (perf inject) state sizes of code that lies deeper in the file than its
// segment says: the last segment of a file may be mapped up to the end of the file.
std::vector<Pages> pages_of(const ElfFile& file) {
  std::uint64_t lowest = ~std::uint64_t{0};
  std::uint64_t highest = 0;
  std::uint64_t last = 0;  // offset of the last segment in the file
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD) continue;
    lowest = std::min(lowest, page_of(segment.p_vaddr));
    highest = std::max(highest, page_after(segment.p_vaddr, segment.p_memsz));
    if (segment.p_filesz != 0) last = std::max(last, segment.p_offset);
  }
  std::vector<Pages> pages;
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
    Pages one{page_of(segment.p_offset), page_after(segment.p_offset, segment.p_filesz),
              page_after(segment.p_offset, segment.p_memsz), (segment.p_flags & PF_X) != 0,
              page_of(segment.p_vaddr) - page_of(segment.p_offset)};
    if (page_of(segment.p_vaddr) == lowest)
      one.most = std::max(one.most, page_after(one.begin, highest - lowest));
    if (one.executable && segment.p_offset == last)
      one.most = std::max(one.most, page_after(0, file.bytes().size()));
    pages.push_back(one);
  }
  return pages;
}

std::vector<Pages> pages_of(const PeFile& file) {
  std::vector<Pages> pages;
  for (const PeFile::Section& section : file.sections()) {
    if (section.file_size == 0) continue;
    pages.push_back({page_of(section.offset), page_after(section.offset, section.file_size),
                     page_after(section.offset, section.size), section.executable,
                     page_of(section.address) - page_of(section.offset)});
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

bool is_within(const FileMapping& mapping, const Pages& pages) noexcept {
  if (mapping.offset < pages.begin || mapping.offset >= pages.end) return false;
  return end_of(mapping) <= (begins(mapping, pages) ? std::max(pages.end, pages.most) : pages.end);
}

// Segments are one mapping where they have equal rights, and adjacent pages in the file and in memory: the
// kernel merges them. All that is readable may be executable (READ_IMPLIES_EXEC, mprotect()).
bool is_merged(const FileMapping& mapping, const Pages& first, const std::vector<Pages>& all) noexcept {
  if (mapping.offset < first.begin || mapping.offset >= first.end) return false;
  if (!begins(mapping, first) && !mapping.is_preceded) return false;
  std::uint64_t reached = first.end;
  bool ends = false;
  for (const Pages& next : all) {  // in the order of addresses
    if (next.delta != first.delta || next.begin < first.begin || next.begin > reached) continue;
    reached = std::max(reached, next.end);
    ends = ends || end_of(mapping) == next.end;
  }
  return end_of(mapping) <= reached && (ends || mapping.is_followed);
}

bool fits(const FileMapping& mapping, const Pages& first, const std::vector<Pages>& all) noexcept {
  return is_within(mapping, first) || is_merged(mapping, first, all);
}

// The mapping, which fits `first`, has bytes of `pages`.
bool reaches(const FileMapping& mapping, const Pages& first, const Pages& pages) noexcept {
  return pages.delta == first.delta && mapping.offset < pages.end &&
         (end_of(mapping) > pages.begin || begins(mapping, pages));
}

std::string text_of(std::uint64_t begin, std::uint64_t end) {
  std::string text = "[";  // GCC 12 warns of the sum of a literal and a temporary
  text += base::hexadecimal(begin) + ", " + base::hexadecimal(end) + ")";
  return text;
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

// Parts of a segment that mappings have. A loader maps it whole, and nothing but anonymous code takes a part
// of it away later.
struct Share {
  bool any = false;
  bool from_begin = false;
  bool to_end = false;
  void add(const FileMapping& mapping, const Pages& pages) noexcept {
    any = true;
    from_begin = from_begin || page_of(mapping.offset) <= pages.begin || mapping.is_preceded;
    to_end = to_end || mapping.size == 0 || end_of(mapping) >= pages.end || mapping.is_followed;
  }
};

struct Verdict {
  const FileMapping* misfit = nullptr;  // the first mapping that no segments have
  bool is_whole = false;                // code is mapped, and each segment of it whole
};

Verdict judge(const std::vector<Pages>& all, std::span<const FileMapping> mappings) {
  std::vector<Share> shares(all.size());
  for (const FileMapping& mapping : mappings) {
    bool is_mapped = false;
    for (const Pages& first : all) {
      if (!fits(mapping, first, all)) continue;
      is_mapped = true;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].executable && reaches(mapping, first, all[i])) shares[i].add(mapping, all[i]);
      }
    }
    if (!is_mapped) return {&mapping, false};
  }
  // Data may be executable, too (READ_IMPLIES_EXEC, mprotect()), but not alone.
  const auto is_any = [](const Share& share) { return share.any; };
  const auto is_part = [](const Share& share) { return share.any && !(share.from_begin && share.to_end); };
  return {nullptr, std::ranges::any_of(shares, is_any) && std::ranges::none_of(shares, is_part)};
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

std::string mapping_contradiction(base::Bytes file, std::span<const FileMapping> mappings,
                                  std::span<const std::vector<FileMapping>> others) {
  constexpr std::size_t kMostMappings = 1000;
  const std::vector<Pages> all = pages_of(file);
  mappings = mappings.first(std::min(mappings.size(), kMostMappings));
  if (all.empty() || mappings.empty()) return {};
  const Verdict own = judge(all, mappings);
  // A program may map a part of its file once more (V8 does it with its builtins).
  const auto is_whole = [&](const std::vector<FileMapping>& other) { return judge(all, other).is_whole; };
  if (own.misfit == nullptr && (own.is_whole || std::ranges::any_of(others, is_whole))) return {};
  return "has code at " + code_of(all) + ", the recording at " +
         text_of(own.misfit != nullptr ? *own.misfit : mappings.front());
}

}  // namespace ptkit::code::image
