// ELF 64 and 32: loadable segments into a bundle's code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::image {

struct ElfPlacement {
  std::optional<std::uint64_t>
      load_address;  // where the lowest loadable segment was mapped; empty: as linked
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t tsc_from = trace::kTscMin;
  std::uint64_t tsc_to = trace::kTscMax;
};

// Maps the file, adds an ImageFile (path, build-id, contents) and a CodeRegion per PT_LOAD segment that has
// file bytes. Returns the index in bundle.files. BAD_FILE (with what is wrong) if it is no usable x86 ELF
// file.
[[nodiscard]] base::Result<std::int32_t> add_elf(trace::TraceBundle& bundle, const std::string& path,
                                                 const ElfPlacement& placement);

// The code symbols of a file (.symtab and .dynsym; PLT entries as name@plt; of a PE file see pe_symbols()),
// sorted by file offset. Empty if it is neither or has none.
[[nodiscard]] std::vector<trace::SymbolEntry> read_symbols(base::Bytes elf);

// A build-id as hex, as files and folders are named by it.
[[nodiscard]] std::string build_id_text(base::Bytes id);
// The build-id as hex, or empty.
[[nodiscard]] std::string elf_build_id(base::Bytes file);

}  // namespace ptkit::image
