// The segments of ELF files and the sections of PE files: their relative virtual addresses (RVA), and the
// parts of the file that are mapped into memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "trace/bundle.h"

namespace ptkit::code::image {

// A segment of an ELF file or a section of a PE file: where its bytes lie in memory.
struct FileSegment {
  std::uint64_t file_offset = 0;  // of its first byte
  std::uint64_t size = 0;         // bytes in the file
  std::uint64_t rva = 0;          // address of its first byte less the file's load address
  bool executable = false;
};

// The loadable segments of an ELF program or library, or the sections of a PE file, that have bytes in the
// file. Empty for other files.
[[nodiscard]] std::vector<FileSegment> file_segments(base::Bytes file);

// The address that the file was linked for, from which RVAs count. nullopt: it is no ELF program or library,
// and no PE file.
[[nodiscard]] std::optional<std::uint64_t> linked_address(base::Bytes file);

// The RVA of a section of a PE file. nullopt: it is no PE file, or has no such section.
[[nodiscard]] std::optional<std::uint64_t> section_rva(base::Bytes file, std::string_view name);

// The RVA of a byte at `file_offset`, which `region` has. If the offset lies in the pages of several
// segments, it is that of the segment that is the region, or of an executable one. nullopt: in no segment.
[[nodiscard]] std::optional<std::uint64_t> rva_of(const std::vector<FileSegment>& segments,
                                                  const trace::CodeRegion& region,
                                                  std::uint64_t file_offset) noexcept;

// An offset from `file_offset` to `last` up to which rva_of() grows with the offset, in any region.
[[nodiscard]] std::uint64_t last_of_same(const std::vector<FileSegment>& segments, std::uint64_t file_offset,
                                         std::uint64_t last) noexcept;

struct FilePart {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The file parts of the loadable segments of an ELF file, or of the sections of a PE file: in whole pages,
// sorted, adjacent parts joined. Empty for other formats and other machines than x86.
[[nodiscard]] std::vector<FilePart> mapped_parts(base::Bytes file);

}  // namespace ptkit::code::image
