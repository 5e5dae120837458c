// MiniDebugInfo: a compressed ELF file with the names of functions that .dynsym lacks, in .gnu_debugdata.
#pragma once

#include <vector>

#include "trace/bundle.h"

namespace ptkit::code::dwarf {

// The functions in it; `file_offset` is the address that the file was linked for. Empty if there are none.
[[nodiscard]] std::vector<trace::SymbolEntry> small_names(base::Bytes file);

}  // namespace ptkit::code::dwarf
