// The debug information of a program without the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace ptkit::code::image {

// An ELF file that has the segments' addresses of an ELF program or library, and its sections with source
// lines and inlined functions as they are: what dwarf::DebugInfo needs. Sections about variables and macros
// are left out. Empty if the file has no such sections, or refers to debug information in other files.
[[nodiscard]] std::string debug_sections(base::Bytes file);

struct NamedSection {
  std::string name;
  base::Bytes contents;
};
// An ELF file of the class and the processor of another one, with these sections alone. Empty if the other
// is no ELF file.
[[nodiscard]] std::string elf_of_sections(base::Bytes like, const std::vector<NamedSection>& sections);

}  // namespace ptkit::code::image
