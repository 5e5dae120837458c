// Link addresses of an ELF file to file offsets. Internal to src/code/bounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "code/image/elf/elf_file.h"

namespace ptkit::code::bounds {

// The loadable segments with bytes in the file. A search by address: a hostile file may have 65,535 of them.
class FileSegments {
 public:
  explicit FileSegments(const code::image::ElfFile& file) {
    for (const GElf_Phdr& segment : file.segments()) {
      const std::uint64_t size = file.bytes().size();
      if (segment.p_type != PT_LOAD || segment.p_filesz == 0 || segment.p_offset >= size) continue;
      segments_.push_back({segment.p_vaddr, segment.p_offset,
                           std::min(segment.p_filesz, size - segment.p_offset),
                           (segment.p_flags & PF_X) != 0});
    }
    std::ranges::sort(segments_, {}, &Segment::address);
  }

  struct FileSpan {
    std::uint64_t offset = 0;
    std::uint64_t left = 0;  // bytes of the segment from there on
    bool executable = false;
  };
  [[nodiscard]] std::optional<FileSpan> find(std::uint64_t address) const noexcept {
    const auto above = std::ranges::upper_bound(segments_, address, {}, &Segment::address);
    if (above == segments_.begin()) return std::nullopt;
    const Segment& segment = *std::prev(above);
    const std::uint64_t inside = address - segment.address;
    if (inside >= segment.size) return std::nullopt;
    return FileSpan{segment.offset + inside, segment.size - inside, segment.executable};
  }

 private:
  struct Segment {
    std::uint64_t address = 0;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    bool executable = false;
  };
  std::vector<Segment> segments_;
};

}  // namespace ptkit::code::bounds
