// PE32+ and PE32 files (programs and drivers of Windows), and dumps of them: adds sections to a bundle's code
// as they lay in memory, relocations applied.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "code/image/placement.h"

namespace ptkit::code::image {

// Whether the file begins with the headers of a PE file.
[[nodiscard]] bool is_pe(base::Bytes file) noexcept;

// Maps the file, adds an ImageFile and a CodeRegion for each section with bytes. Without a load address, uses
// the recorded address of a module of this name (a region of such a file without bytes), or else the linked
// address. Fails with BAD_FILE and the reason if the file is no usable x86 file.
[[nodiscard]] base::Result<std::int32_t> add_pe(trace::TraceBundle& bundle, const std::string& path,
                                                const Placement& placement);

// Adds bytes as they lay in memory at an address. If they are a PE image there (pe_layout.h), it becomes an
// ImageFile with a CodeRegion for each section, of the name; "": of the name that the image has of itself.
// Returns the index in bundle.files; -1: they are no image.
std::int32_t add_code(trace::TraceBundle& bundle, const std::string& name, const trace::TraceBuffer& code,
                      std::uint64_t address, trace::SpaceId space);

// The exported names and the functions of the COFF symbol table, sorted by file offset; of one address,
// exports come first, and 32-bit names without their decoration ("_f@8"). Sizes come from pe_functions(), and
// functions that only those have are "sub_427C", by their RVA. Stripped programs of Go have the names of Go's
// table of functions. `with_ends`: see read_symbols(). Empty if the file is no PE file or has no symbols.
[[nodiscard]] std::vector<trace::SymbolEntry> pe_symbols(base::Bytes file, bool with_ends = false);

// A name of 32-bit code without what the calling convention adds: "_f" (cdecl), "_f@8" (stdcall), "@f@8"
// (fastcall), "f@@8" (vectorcall). C++ names of Microsoft's compilers begin with "?" and stay.
[[nodiscard]] std::string_view undecorated(std::string_view name) noexcept;
// For a name in a table of exports or imports, where linkers leave out the "_" of cdecl: "_open" is
// a name in C.
[[nodiscard]] std::string_view undecorated_export(std::string_view name) noexcept;

// The bytes of the image in memory (SizeOfImage); 0: the file does not say it, or is no PE file.
[[nodiscard]] std::uint64_t pe_image_bytes(base::Bytes file);

// The name of the file's PDB, without folders; empty: it has none, or is no PE file.
[[nodiscard]] std::string pe_pdb_name(base::Bytes file);

}  // namespace ptkit::code::image
