#include "formats/symbols/symbol_list.h"

#include <algorithm>
#include <memory>

#include "base/paths.h"
#include "code/source/pdb/pdb_file.h"

namespace ptkit::formats {

SymbolList read_pdb_list(const std::string& path, base::Bytes contents) {
  std::shared_ptr<const code::pdb::PdbFile> file = code::pdb::shared_pdb(path);
  if (!file || !std::ranges::equal(file->bytes(), contents))
    file = std::make_shared<const code::pdb::PdbFile>(path, trace::TraceBuffer(contents, nullptr));
  const auto names = file->names();
  SymbolList list{.kind = "PDB", .symbols = names->symbols};
  list.linked_base = 0;
  list.module = base::last_part(path);
  list.pdb = file->id()->id;
  list.only_by_id = true;
  list.problem = names->problem;
  return list;
}

}  // namespace ptkit::formats
