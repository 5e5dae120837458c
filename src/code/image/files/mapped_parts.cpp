#include "code/image/files/mapped_parts.h"

#include <algorithm>

#include "base/addresses.h"
#include "code/image/elf/elf_file.h"
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

}  // namespace

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
