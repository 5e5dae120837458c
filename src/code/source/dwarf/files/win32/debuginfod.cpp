#include "code/source/dwarf/files/debuginfod.h"

namespace ptkit::code::dwarf {

// elfutils' client library does not run on Windows.
std::string fetch_debug_file(const std::string& /*build_id*/) { return {}; }

}  // namespace ptkit::code::dwarf
