// The parts of a program file that are mapped into memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace ptkit::code::image {

struct FilePart {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The file parts of the loadable segments of an ELF file, or of the sections of a PE file: in whole pages,
// sorted, adjacent parts joined. Empty for other formats and other machines than x86.
[[nodiscard]] std::vector<FilePart> mapped_parts(base::Bytes file);

}  // namespace ptkit::code::image
