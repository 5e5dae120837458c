// Reads the heads of the entries (CIE, FDE) of .eh_frame: which functions a file has, and where their call
// sites are listed. LSB Core 5.0, section "Exception Frames". Internal to src/code/bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "code/image/elf/elf_file.h"

namespace ptkit::code::bounds {

// A frame description entry (FDE). Link addresses.
struct FrameEntry {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
  std::uint64_t call_sites = 0;  // address of its table (LSDA); 0: none
  bool is_part = false;          // its first instruction has the stack of a function that runs already
};

// In the order of the file. Left out are entries that are damaged, and those with addresses that are known at
// run time only. Empty for relocatable files, as their addresses are not final.
[[nodiscard]] std::vector<FrameEntry> read_frame_entries(const code::image::ElfFile& file);

}  // namespace ptkit::code::bounds
