// Names of modules: of files, of PDBs, and as debuggers shorten them.
#pragma once

#include <string_view>

namespace ptkit::trace {

// Whether two names are of one module: "srv2" and "C:\\Windows\\srv2.sys", "nt" and "ntoskrnl.exe" and
// "ntkrnlmp.pdb", "libc.so.6" and "/lib/libc.so.6". Windows ignores case.
[[nodiscard]] bool is_same_module(std::string_view a, std::string_view b);

}  // namespace ptkit::trace
