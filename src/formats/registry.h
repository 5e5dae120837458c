// The registry of input formats that are read in C++. Each is one source file and one row in registry.cpp.
#pragma once

#include <span>
#include <string>

#include "formats/common/format.h"

namespace ptkit::formats {

[[nodiscard]] std::span<const Format> formats() noexcept;  // in sniffing order, raw last

// Returns the first format that recognises the path or the bytes; nullptr: none.
[[nodiscard]] const Format* find_format(const std::string& path);
[[nodiscard]] const Format* find_format_of_bytes(base::Bytes bytes);

// Opens a path by content, or by options.format. Failures name the path, the expected and the found contents.
[[nodiscard]] base::Result<trace::TraceBundle> open(const std::string& path, const OpenOptions& options);
// Opens the bytes of a one-file recording. Messages name it `name`.
[[nodiscard]] base::Result<trace::TraceBundle> open_bytes(const std::string& name,
                                                          const trace::TraceBuffer& bytes,
                                                          const OpenOptions& options);

}  // namespace ptkit::formats
