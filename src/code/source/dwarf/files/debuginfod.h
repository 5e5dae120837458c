// Debug files of debuginfod servers, by elfutils' client library, which is opened at run time. Internal to
// src/code/source/dwarf.
#pragma once

#include <string>

namespace ptkit::code::dwarf {

// The path of the debug file with a build-id (hex) that a server of $DEBUGINFOD_URLS has, or that was fetched
// before. Empty: there is none, the variable is not set, or the library is not installed. May take as long as
// $DEBUGINFOD_TIMEOUT says.
[[nodiscard]] std::string fetch_debug_file(const std::string& build_id);

}  // namespace ptkit::code::dwarf
