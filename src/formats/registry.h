// Every input format is one file here and one row in registry.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats {

// What the user said where the input does not say.
struct OpenOptions {
  std::string format{};                 // registry name to force, or empty: by content
  std::vector<std::string> binaries{};  // folders to look in for programs and libraries that were traced
};

struct Format {
  const char* name;         // "ptk", "lldb", "libxdc", "raw"
  const char* description;  // for docs and `ptkit info`
  // Cheap look at the path (file or folder): can this format be what is there?
  bool (*sniff)(const std::string& path);
  base::Result<trace::TraceBundle> (*read)(const std::string& path, const OpenOptions& options);
  // The same for bytes that came out of a pipe; nullptr: a recording is several files.
  bool (*sniff_bytes)(base::Bytes bytes) = nullptr;
  base::Result<trace::TraceBundle> (*read_bytes)(const std::string& name, const trace::TraceBuffer& bytes,
                                                 const OpenOptions& options) = nullptr;
};

[[nodiscard]] std::span<const Format> formats() noexcept;  // in sniffing order, raw last

// Opens a path by content (or options.format). Failures name the path, what was expected and what was found.
[[nodiscard]] base::Result<trace::TraceBundle> open(const std::string& path, const OpenOptions& options);
// The same for the bytes of a recording of one file; messages call it `name`.
[[nodiscard]] base::Result<trace::TraceBundle> open_bytes(const std::string& name,
                                                          const trace::TraceBuffer& bytes,
                                                          const OpenOptions& options);

}  // namespace ptkit::formats
