// ELF 64 and 32: loadable segments into a bundle's code.
#pragma once

#include <string>
#include <vector>

#include "image/code_file.h"

namespace ptkit::image {

// Maps the file, adds an ImageFile (path, build-id, contents) and a CodeRegion per PT_LOAD segment that has
// file bytes. Returns the index in bundle.files. BAD_FILE (with what is wrong) if it is no usable x86 ELF
// file.
[[nodiscard]] base::Result<std::int32_t> add_elf(trace::TraceBundle& bundle, const std::string& path,
                                                 const Placement& placement);

// The code symbols of a file (.symtab and .dynsym; PLT entries as name@plt), sorted by file offset. Empty if
// it is no ELF file or has none.
[[nodiscard]] std::vector<trace::SymbolEntry> elf_symbols(base::Bytes file);

// A build-id as hex, as files and folders are named by it.
[[nodiscard]] std::string build_id_text(base::Bytes id);
// The build-id as hex, or empty.
[[nodiscard]] std::string elf_build_id(base::Bytes file);
// Whether the file has sections of code, and none of them is in it: it holds debug information alone, at
// other places than those of the program's file.
[[nodiscard]] bool is_debug_only(base::Bytes file);

}  // namespace ptkit::image
