// Puts lists of symbols and of modules to their addresses in a bundle.
#pragma once

#include <optional>
#include <string>

#include "formats/symbols/symbol_list.h"

namespace ptkit::formats {

// Adds the modules of a list: images that are added later, and lists, find their addresses by these names.
void add_modules(trace::TraceBundle& bundle, const SymbolList& list);

// Adds the symbols of a list.
//
// With a base, addresses of the list less its own base (that of its module, where the list or the image of
// the module says it; else 0, or what the lowest address suggests) are added to it, for the spaces that have
// the list's module there, or else for all spaces; with a CR3, for the spaces that have it. Without
// one, addresses of a running system stay as they are, and others go wherever the trace has the list's
// module: by the id of its PDB, by the name that the list has, or by the name of its file. A list of no
// module stays as it is if the trace has code at its addresses, or if it is of a kernel. BAD_CONFIG: it is
// not known where to put it. A warning says if no symbol lies at code of the trace.
[[nodiscard]] std::optional<base::Failure> add_symbols(trace::TraceBundle& bundle, const std::string& path,
                                                       SymbolList list, std::optional<std::uint64_t> base,
                                                       std::optional<std::uint64_t> cr3 = std::nullopt);

}  // namespace ptkit::formats
