// Files that a recording names and that were not found. For .cpp files of this folder only.
#pragma once

#include <span>
#include <string>

#include "trace/bundle.h"

namespace ptkit::formats {

struct MissingFile {
  std::string path;
  std::string build_id{};  // hex, may be empty
  std::string reason{};    // why a file of this name was not taken; empty: there was none
};

// Appends them to the member "missing_files" of the bundle's metadata, an array of objects with these
// members.
void list_missing_files(trace::TraceBundle& bundle, std::span<const MissingFile> files);

}  // namespace ptkit::formats
