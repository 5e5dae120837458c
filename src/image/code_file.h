// Files of code, whatever their format: into a bundle's code, and the names in them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::image {

// Where and when the code of a file is seen.
struct Placement {
  // ELF: where the lowest loadable segment was mapped; PE: the image's base. Empty: as linked (PE: or as
  // recorded, see add_pe()).
  std::optional<std::uint64_t> load_address;
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t tsc_from = trace::kTscMin;
  std::uint64_t tsc_to = trace::kTscMax;
};

// add_pe() or add_elf(), by what the file is.
[[nodiscard]] base::Result<std::int32_t> add_image(trace::TraceBundle& bundle, const std::string& path,
                                                   const Placement& placement);

// pe_symbols() or elf_symbols(), by what the file is: sorted by file offset; empty if it is neither or has
// none.
[[nodiscard]] std::vector<trace::SymbolEntry> read_symbols(base::Bytes file);

}  // namespace ptkit::image
