// Functions of Go in an ELF file. Internal to src/code/image.
#pragma once

#include <vector>

#include "code/image/elf/elf_file.h"
#include "code/image/go_table.h"

namespace ptkit::code::image {

// By address. Empty: the file has no table of Go's functions. Names live as long as the file's bytes.
[[nodiscard]] std::vector<GoFunction> go_functions(const ElfFile& file);

}  // namespace ptkit::code::image
