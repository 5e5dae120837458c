// Code files of all formats: adds their code to a bundle, reads their symbols.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "code/image/pe_layout.h"
#include "trace/bundle.h"

namespace ptkit::code::image {

// The address, space and time of a file's code.
struct Placement {
  // ELF: the address of the lowest loadable segment; PE: the image's base. Empty: as linked (PE: or as
  // recorded, see add_pe()).
  std::optional<std::uint64_t> load_address;
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t tsc_from = trace::kTscMin;
  std::uint64_t tsc_to = trace::kTscMax;
  std::optional<PeLayout> layout{};  // of a PE file. Empty: by its contents
};

// Calls add_pe() or add_elf(), by the file's format.
[[nodiscard]] base::Result<std::int32_t> add_image(trace::TraceBundle& bundle, const std::string& path,
                                                   const Placement& placement);

// The spaces that have a CR3 (compared as in has_cr3()); adds one if there is none.
[[nodiscard]] std::vector<trace::SpaceId> spaces_with(trace::TraceBundle& bundle, std::uint64_t cr3);
// Adds the regions from `first` on to further spaces.
void repeat_in(trace::TraceBundle& bundle, std::size_t first, std::span<const trace::SpaceId> spaces);

// Calls pe_symbols() or elf_symbols(), by the file's format. Sorted by file offset; empty if the file has
// another format or no symbols. `with_ends`: as tables of symbols and bundles have them, with an entry
// without a name at the end of each section that has symbols without a size.
[[nodiscard]] std::vector<trace::SymbolEntry> read_symbols(base::Bytes file, bool with_ends = false);

}  // namespace ptkit::code::image
