// Names of functions from what llvm-pdbutil lists. Internal to src/code/source/pdb.
#pragma once

#include <vector>

#include "code/source/pdb/dump/dump_reader.h"
#include "trace/bundle.h"

namespace ptkit::code::pdb {

// `is_32_bit`: publics have the decoration of 32-bit code, which debuggers leave out.
[[nodiscard]] std::vector<trace::SymbolEntry> names_in(DumpReader dump, bool is_32_bit);

}  // namespace ptkit::code::pdb
