// Code files of all formats: adds their code to a bundle, reads their symbols.
#pragma once

#include <string>
#include <vector>

#include "code/image/placement.h"
#include "trace/bundle.h"

namespace ptkit::code::image {

// Calls add_pe() or add_elf(), by the file's format.
[[nodiscard]] base::Result<std::int32_t> add_image(trace::TraceBundle& bundle, const std::string& path,
                                                   const Placement& placement);

// Calls pe_symbols() or elf_symbols(), by the file's format. Sorted by file offset; empty if the file has
// another format or no symbols. `with_ends`: as tables of symbols and bundles have them, with an entry
// without a name at the end of each section that has symbols without a size.
[[nodiscard]] std::vector<trace::SymbolEntry> read_symbols(base::Bytes file, bool with_ends = false);

}  // namespace ptkit::code::image
