// Where debug files are looked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "code/source/dwarf/files/shared_files.h"
#include "trace/bundle.h"

namespace ptkit::code::dwarf {

struct DebugFiles {
  std::shared_ptr<const SharedFile> program;  // the file that was mapped; null: not on this machine
  std::shared_ptr<const SharedFile> debug;    // its separate debug file; null: none
  std::string other;                          // path of a file that would be, but is of another build
  bool is_rebuilt = false;  // a program of another build, with debug information, is at the path
};

// The program is the file at its path if that has the recorded build-id, or else the contents that the bundle
// has. The debug file is looked for among given files, by build-id, then by the program's .gnu_debuglink.
[[nodiscard]] DebugFiles find_debug_files(const trace::ImageFile& file, const Folders& folders);

// The file that `link` names, with its build-id; empty if there is none. `path`: of the file with the link.
[[nodiscard]] trace::TraceBuffer find_alternate(const AltLink& link, const std::string& path,
                                                const Folders& folders);

// Files that may have split units: what `link` names, or packages of the file at `path`.
[[nodiscard]] std::vector<trace::TraceBuffer> find_split(const SplitLink& link, const std::string& path,
                                                         const Folders& folders);

}  // namespace ptkit::code::dwarf
