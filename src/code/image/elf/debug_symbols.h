// Symbols of separate debug files.
#pragma once

#include <vector>

#include "trace/bundle.h"

namespace ptkit::code::image {

// The code symbols in .symtab of an ELF program, library or debug file. `file_offset` is the address that the
// program was linked for: offsets in a debug file are not those of the program.
[[nodiscard]] std::vector<trace::SymbolEntry> elf_debug_symbols(base::Bytes file);

}  // namespace ptkit::code::image
