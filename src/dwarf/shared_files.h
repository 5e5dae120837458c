// Debug information that all traces of this process share.
#pragma once

#include <memory>

#include "dwarf/debug_info.h"
#include "trace/bundle.h"

namespace ptkit::dwarf {

struct SharedFile {
  trace::TraceBuffer file;  // the file that has the debug information
  std::shared_ptr<const DebugInfo> info;
};

// The debug information of a file of a bundle: of the file at its path if that has the same build-id, or else
// of its contents. Nothing if there is none. Thread-safe.
[[nodiscard]] SharedFile debug_info_of(const trace::ImageFile& file);

}  // namespace ptkit::dwarf
