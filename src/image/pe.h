// PE32+ and PE32 (programs and drivers of Windows): sections into a bundle's code. Nothing is relocated: what
// relocations change are addresses in operands, which decoding does not look at.
#pragma once

#include <string>
#include <vector>

#include "image/code_file.h"

namespace ptkit::image {

// Does it begin as a PE file?
[[nodiscard]] bool is_pe(base::Bytes file) noexcept;

// Maps the file, adds an ImageFile and a CodeRegion for each section that has bytes. Without a load address:
// where the recording says that a module of this name was (a region of such a file without bytes), else the
// address that the file was linked for. BAD_FILE (with what is wrong) if it is no usable x86 file.
[[nodiscard]] base::Result<std::int32_t> add_pe(trace::TraceBundle& bundle, const std::string& path,
                                                const Placement& placement);

// Exported names and functions of the COFF symbol table, by file offset. Sizes come from the table of
// functions that x64 files have for unwinding. Empty if it is no PE file or has none.
[[nodiscard]] std::vector<trace::SymbolEntry> pe_symbols(base::Bytes file);

}  // namespace ptkit::image
