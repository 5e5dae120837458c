// Names of modules: of files, of PDBs, and as debuggers shorten them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptkit::trace {

// Whether two names are of one module: "srv2" and "C:\\Windows\\srv2.sys", "nt" and "ntoskrnl.exe" and
// "ntkrnlmp.pdb", "libc.so.6" and "/lib/libc.so.6". Windows ignores case.
[[nodiscard]] bool is_same_module(std::string_view a, std::string_view b);

// "jit-4711.dump" of process 4711. A JIT compiler maps a page of its jitdump as executable, so that an MMAP
// record names the file.
[[nodiscard]] bool is_jit_dump(std::string_view path);
// 4711 of "/tmp/perf-4711.map"; nullopt: another file.
[[nodiscard]] std::optional<std::int64_t> pid_of_jit_map(std::string_view path);

}  // namespace ptkit::trace
