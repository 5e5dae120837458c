// Names of functions from what llvm-pdbutil lists. Internal to src/pdb.
#pragma once

#include <vector>

#include "pdb/dump/dump_reader.h"
#include "trace/bundle.h"

namespace ptkit::pdb {

// `is_32_bit`: publics have the decoration of 32-bit code, which debuggers leave out.
[[nodiscard]] std::vector<trace::SymbolEntry> names_in(DumpReader dump, bool is_32_bit);

}  // namespace ptkit::pdb
