#include "code/source/pdb/tool.h"

namespace ptkit::code::pdb {

// PDBs are hostile input, and only Linux has what takes a program's rights (src/base/confined). So the tool
// is not looked for, and each PDB says why it is not used.
std::string find_tool() { return "llvm-pdbutil"; }

std::string Tool::run(const std::vector<std::string>& /*arguments*/,
                      const std::function<bool(std::string_view)>& /*take*/,
                      std::uint64_t /*most_output*/) const {
  return "llvm-pdbutil reads PDBs without rights, which only Linux can take; decode the recording on Linux "
         "for its names and lines";
}

}  // namespace ptkit::code::pdb
