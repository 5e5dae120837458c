// ELF files of 64 and 32 bits: adds loadable segments to a bundle's code.
#pragma once

#include <string>
#include <vector>

#include "code/image/placement.h"
#include "trace/bundle.h"

namespace ptkit::code::image {

// Maps the file, adds an ImageFile (path, build-id, contents) and a CodeRegion per PT_LOAD segment that has
// file bytes. Returns the index in bundle.files. BAD_FILE (with what is wrong) if it is no usable x86 ELF
// file.
[[nodiscard]] base::Result<std::int32_t> add_elf(trace::TraceBundle& bundle, const std::string& path,
                                                 const Placement& placement);

// The code symbols of a file (.symtab and .dynsym; PLT entries as name@plt; of stripped programs of Go, those
// of Go's table of functions), sorted by file offset. `with_ends`: see read_symbols(). Empty if the file is
// no ELF file or has no symbols.
[[nodiscard]] std::vector<trace::SymbolEntry> elf_symbols(base::Bytes file, bool with_ends = false);

// A build-id in hex, as in file and folder names.
[[nodiscard]] std::string build_id_text(base::Bytes id);
// The file's build-id in hex, or empty.
[[nodiscard]] std::string elf_build_id(base::Bytes file);
// Whether the file is a separate debug file: it has code sections without contents. Its file offsets differ
// from those of the program's file.
[[nodiscard]] bool is_debug_only(base::Bytes file);

// The code symbols in .symtab of an ELF program, library or debug file. `file_offset` is the address that the
// program was linked for: offsets in a debug file are not those of the program.
[[nodiscard]] std::vector<trace::SymbolEntry> elf_debug_symbols(base::Bytes file);

}  // namespace ptkit::code::image
