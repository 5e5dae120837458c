// Where the PDB of a module is looked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "code/source/pdb/pdb_file.h"
#include "trace/bundle.h"
#include "trace/warning.h"

namespace ptkit::code::pdb {

struct FoundPdb {
  std::shared_ptr<const PdbFile> file;  // null: none
  std::vector<trace::Warning> problems;
};

// The PDB with the id of a PE file, among paths of PDBs and in folders: NAME.pdb, or NAME.pdb/ID/NAME.pdb as
// symbol servers have it. Names are that in the file's debug directory, and its own.
[[nodiscard]] FoundPdb find_pdb(const trace::ImageFile& file, const std::vector<std::string>& folders);

}  // namespace ptkit::code::pdb
