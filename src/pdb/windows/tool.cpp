#include "pdb/tool.h"

namespace ptkit::pdb {

std::string find_tool() { return {}; }

std::string Tool::run(const std::vector<std::string>& /*arguments*/,
                      const std::function<bool(std::string_view)>& /*take*/,
                      std::uint64_t /*most_output*/) const {
  return "no program can be confined on Windows";
}

}  // namespace ptkit::pdb
