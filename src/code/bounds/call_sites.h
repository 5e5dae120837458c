// Reads the call-site tables of .gcc_except_table (language-specific data areas, LSDA). C++ and Rust use the
// same form: Itanium C++ ABI, "Exception Handling Tables". Internal to src/code/bounds.
#pragma once

#include <cstdint>
#include <vector>

#include "code/bounds/eh_frame.h"
#include "code/bounds/places.h"
#include "code/image/elf/elf_file.h"

namespace ptkit::code::bounds {

// Instructions from which an exception goes on at a landing pad. Link addresses.
struct CallSite {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t pad = 0;
};

class CallSiteReader {
 public:
  CallSiteReader(const code::image::ElfFile& file, const Places& places)
      : file_(file), places_(places), left_(file.bytes().size()) {}

  // The call sites of a function that have a landing pad.
  [[nodiscard]] std::vector<CallSite> read(const FrameEntry& frame);

 private:
  const code::image::ElfFile& file_;
  const Places& places_;
  // Bytes of tables to read yet. In real files each function has a table of its own, so all together have
  // fewer bytes than the file. In hostile ones all functions may refer to one large table.
  std::uint64_t left_;
};

}  // namespace ptkit::code::bounds
