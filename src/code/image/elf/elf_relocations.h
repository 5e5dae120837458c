// Relocations of an ELF file, each with the name of its symbol. Internal to src/code/image.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "code/image/elf/elf_file.h"

namespace ptkit::code::image {

struct ElfRelocation {
  GElf_Rela entry{};
  bool has_addend = false;    // in the entry; else it is in the slot
  std::string_view name;      // of its symbol of the dynamic linker; empty: it has none
  bool is_undefined = false;  // the symbol is another file's
};

// Calls `visit` for each one until that returns false.
void for_each_relocation(const ElfFile& file, const std::vector<ElfFile::Section>& sections,
                         const std::function<bool(const ElfRelocation&)>& visit);

}  // namespace ptkit::code::image
