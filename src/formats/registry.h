// The registry of input formats. Each format is one source file and one row in registry.cpp.
#pragma once

#include <span>
#include <string>

#include "formats/common/format.h"

namespace ptkit::formats {

[[nodiscard]] std::span<const Format> formats() noexcept;  // in sniffing order, raw last

// Opens a path by content, or by options.format. Failures name the path, the expected and the found contents.
[[nodiscard]] base::Result<trace::TraceBundle> open(const std::string& path, const OpenOptions& options);
// The same for the bytes of a one-file recording. Messages name it `name`.
[[nodiscard]] base::Result<trace::TraceBundle> open_bytes(const std::string& name,
                                                          const trace::TraceBuffer& bytes,
                                                          const OpenOptions& options);

}  // namespace ptkit::formats
