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
};

[[nodiscard]] std::span<const Format> formats() noexcept;  // in sniffing order, raw last

// Opens a path by content (or options.format). Failures name the path, what was expected and what was found.
[[nodiscard]] base::Result<trace::TraceBundle> open(const std::string& path, const OpenOptions& options);

}  // namespace ptkit::formats
