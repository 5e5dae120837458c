#include "code/image/files/segments.h"

#include <algorithm>
#include <limits>

#include "base/addresses.h"
#include "code/image/elf/elf_file.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_file.h"

namespace ptkit::code::image {
namespace {

class Parts {
 public:
  explicit Parts(std::uint64_t file_size) : file_size_(file_size) {}

  void add(std::uint64_t offset, std::uint64_t size) {
    if (size == 0 || offset > file_size_ || size > file_size_ - offset) return;
    parts_.push_back({offset & ~base::kOffsetInPage,
                      std::min((offset + size + base::kOffsetInPage) & ~base::kOffsetInPage, file_size_)});
  }

  std::vector<FilePart> joined() {
    std::sort(parts_.begin(), parts_.end(),
              [](const FilePart& a, const FilePart& b) { return a.begin < b.begin; });
    std::vector<FilePart> out;
    for (const FilePart& part : parts_) {
      if (!out.empty() && part.begin <= out.back().end) {
        out.back().end = std::max(out.back().end, part.end);
      } else {
        out.push_back(part);
      }
    }
    return out;
  }

 private:
  std::uint64_t file_size_;
  std::vector<FilePart> parts_;
};

constexpr std::uint64_t kUpperHalf = std::uint64_t{1} << 63U;

bool is_loaded(const GElf_Phdr& segment) noexcept {
  return segment.p_type == PT_LOAD && segment.p_filesz != 0;
}

// The linked address of the page that the lowest segment begins in. The kernel's data for each processor are
// linked at 0, but not loaded there.
std::uint64_t linked_base(const ElfFile& file) noexcept {
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t lowest_of_kernel = lowest;
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD) continue;
    lowest = std::min(lowest, segment.p_vaddr);
    if (segment.p_vaddr >= kUpperHalf) lowest_of_kernel = std::min(lowest_of_kernel, segment.p_vaddr);
  }
  const bool is_kernel =
      file.header().e_type == ET_EXEC && lowest_of_kernel != std::numeric_limits<std::uint64_t>::max();
  return (is_kernel ? lowest_of_kernel : lowest) & ~base::kOffsetInPage;
}

// Addresses of core files, such as /proc/kcore, are relative to nothing.
bool is_linked(const ElfFile& file) noexcept {
  return file.header().e_type == ET_EXEC || file.header().e_type == ET_DYN;
}

std::vector<FileSegment> elf_segments(const ElfFile& file) {
  std::vector<FileSegment> found;
  if (!is_linked(file)) return found;
  const std::uint64_t base = linked_base(file);
  for (const GElf_Phdr& segment : file.segments()) {
    if (!is_loaded(segment)) continue;
    found.push_back(
        {segment.p_offset, segment.p_filesz, segment.p_vaddr - base, (segment.p_flags & PF_X) != 0});
  }
  return found;
}

std::vector<FileSegment> pe_segments(const PeFile& file) {
  std::vector<FileSegment> found;
  for (const PeFile::Section& section : file.sections()) {
    if (section.file_size != 0)
      found.push_back({section.offset, section.file_size, section.address, section.executable});
  }
  return found;
}

bool contains(const FileSegment& segment, std::uint64_t offset) noexcept {
  return offset >= segment.file_offset && offset - segment.file_offset < segment.size;
}

// Whether the offset lies in the pages that are mapped for the segment.
bool contains_in_pages(const FileSegment& segment, std::uint64_t offset) noexcept {
  const std::uint64_t begin = segment.file_offset & ~base::kOffsetInPage;
  const std::uint64_t last = (segment.file_offset + (segment.size - 1)) | base::kOffsetInPage;
  return offset >= begin && offset <= last;
}

// The less, the better a segment explains the offset.
enum class Match : std::uint8_t { REGION, CODE, CODE_PAGES, DATA, DATA_PAGES, NONE };

Match match(const FileSegment& segment, const trace::CodeRegion& region, std::uint64_t offset) noexcept {
  const bool inside = contains(segment, offset);
  if (inside && segment.file_offset == region.file_offset && segment.size == region.size)
    return Match::REGION;
  if (segment.size == 0 || !contains_in_pages(segment, offset)) return Match::NONE;
  if (segment.executable) return inside ? Match::CODE : Match::CODE_PAGES;
  return inside ? Match::DATA : Match::DATA_PAGES;
}

}  // namespace

std::vector<FileSegment> file_segments(base::Bytes file) {
  if (is_pe(file)) {
    const auto pe = PeFile::open(file);
    return pe.ok() ? pe_segments(pe.value()) : std::vector<FileSegment>{};
  }
  const auto elf = ElfFile::open(file);
  return elf.ok() ? elf_segments(elf.value()) : std::vector<FileSegment>{};
}

std::optional<std::uint64_t> linked_address(base::Bytes file) {
  if (is_pe(file)) {
    const auto pe = PeFile::open(file);
    return pe.ok() ? std::optional(pe.value().linked_base()) : std::nullopt;
  }
  const auto elf = ElfFile::open(file);
  if (!elf.ok() || !is_linked(elf.value()) || elf.value().segments().empty()) return std::nullopt;
  return linked_base(elf.value());
}

std::optional<std::uint64_t> section_rva(base::Bytes file, std::string_view name) {
  const auto pe = PeFile::open(file);
  if (!pe.ok()) return std::nullopt;
  const auto& sections = pe.value().sections();
  const auto found = std::ranges::find(sections, name, &PeFile::Section::name);
  return found == sections.end() ? std::nullopt : std::optional<std::uint64_t>(found->address);
}

std::optional<std::uint64_t> rva_of(const std::vector<FileSegment>& segments, const trace::CodeRegion& region,
                                    std::uint64_t file_offset) noexcept {
  Match best = Match::NONE;
  std::optional<std::uint64_t> rva;
  for (const FileSegment& segment : segments) {
    const Match found = match(segment, region, file_offset);
    if (found >= best) continue;
    best = found;
    rva = segment.rva + (file_offset - segment.file_offset);
  }
  return rva;
}

std::uint64_t last_of_same(const std::vector<FileSegment>& segments, std::uint64_t file_offset,
                           std::uint64_t last) noexcept {
  for (const FileSegment& segment : segments) {
    const std::uint64_t end = segment.file_offset + segment.size;
    for (const std::uint64_t limit : {segment.file_offset & ~base::kOffsetInPage, segment.file_offset, end,
                                      ((end - 1) | base::kOffsetInPage) + 1}) {
      if (limit > file_offset) last = std::min(last, limit - 1);
    }
  }
  return last;
}

std::vector<FilePart> mapped_parts(base::Bytes file) {
  Parts parts(file.size());
  if (const auto elf = ElfFile::open(file); elf.ok()) {
    for (const GElf_Phdr& segment : elf.value().segments()) {
      if (segment.p_type == PT_LOAD) parts.add(segment.p_offset, segment.p_filesz);
    }
  } else if (const auto pe = PeFile::open(file); pe.ok()) {
    for (const PeFile::Section& section : pe.value().sections()) parts.add(section.offset, section.file_size);
  }
  return parts.joined();
}

}  // namespace ptkit::code::image
