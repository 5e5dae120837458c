// Files that a recording names and that were not found, or lie outside of its folder.
#pragma once

#include <span>
#include <string>
#include <vector>

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

// What the bytes of a file were taken for.
enum class OutsideUse : std::uint8_t { CODE, TRACE };

// A file outside of the recording's folder that nothing but the recording's word leads to: a stranger's
// recording may name any file of the reader's.
struct OutsideFile {
  std::string path;
  OutsideUse use = OutsideUse::CODE;
};

// Whether the file that `path` names, links followed, lies elsewhere than in or below `folder`.
[[nodiscard]] bool is_outside(const std::string& folder, const std::string& path);
// Links to elsewhere in the folder of a recording, and in its folders.
[[nodiscard]] std::vector<OutsideFile> links_to_elsewhere(const std::string& folder);
// Appends them to the member "outside_files" of the bundle's metadata: objects with "path" and "use" ("code"
// or "trace").
void list_outside_files(trace::TraceBundle& bundle, std::span<const OutsideFile> files);
// The paths in that list, of this use.
[[nodiscard]] std::vector<std::string> outside_files(const trace::TraceBundle& bundle, OutsideUse use);

}  // namespace ptkit::formats
