// Which parts of a program's file become its memory.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace ptkit::image {

struct FilePart {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// What loadable segments of an ELF file, or sections of a PE file, take from it: in whole pages, as systems
// map them, in order, joined where they touch. Empty if it is neither, or not for x86.
[[nodiscard]] std::vector<FilePart> mapped_parts(base::Bytes file);

}  // namespace ptkit::image
