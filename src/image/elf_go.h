// Functions of Go in an ELF file. Internal to src/image.
#pragma once

#include <vector>

#include "image/elf_file.h"
#include "image/go_table.h"

namespace ptkit::image {

// By address. Empty: the file has no table of Go's functions. Names live as long as the file's bytes.
[[nodiscard]] std::vector<GoFunction> go_functions(const ElfFile& file);

}  // namespace ptkit::image
