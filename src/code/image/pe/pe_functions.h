// Bounds of functions in a PE file: the exception directory (.pdata) of x64 files.
#pragma once

#include <cstdint>
#include <vector>

#include "code/image/pe/pe_file.h"

namespace ptkit::code::image {

// Relative to the image's base.
struct PeFunction {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool is_part = false;  // of another function, at another address
};

// Sorted by begin, one of each begin. Entries for the bytes right after a function that have its UNWIND_INFO
// are joined with it. Empty for 32-bit files. The image's sections may lack the bytes.
[[nodiscard]] std::vector<PeFunction> pe_functions(const PeFile& file);

}  // namespace ptkit::code::image
