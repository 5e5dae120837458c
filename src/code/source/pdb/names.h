// Names of functions in a PDB. Internal to src/code/source/pdb.
#pragma once

#include <string>
#include <vector>

#include "code/source/budget.h"
#include "code/source/pdb/debug_streams.h"
#include "trace/bundle.h"

namespace ptkit::code::pdb {

// As PdbNames::symbols. `memory`: the bytes that they may take. `problem`: why there are none.
[[nodiscard]] std::vector<trace::SymbolEntry> read_names(const MsfFile& file, const DebugStreams& streams,
                                                         code::source::Budget& memory, std::string& problem);

}  // namespace ptkit::code::pdb
