// Files that a recording names but that are missing, or that lie outside of the recording's folder.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats {

struct MissingFile {
  std::string path;
  std::string build_id{};  // hex, may be empty
  std::string reason{};    // why a file of this name was rejected; empty: no file of this name exists
};

// Appends files to the member "missing_files" of the bundle's metadata: an array of objects with the members
// of MissingFile.
void list_missing_files(trace::TraceBundle& bundle, std::span<const MissingFile> files);

// Use of a file's bytes in a bundle.
enum class OutsideUse : std::uint8_t { CODE, TRACE };

// A file outside of the recording's folder that was read only because the recording names it. An untrusted
// recording may name any file of the user.
struct OutsideFile {
  std::string path;
  OutsideUse use = OutsideUse::CODE;
};

// Tests which files lie in a recording's folder.
class RecordingFolder {
 public:
  explicit RecordingFolder(std::string path);
  // Returns true if `file`, with symbolic links resolved, lies neither in nor below the folder.
  [[nodiscard]] bool is_outside(const std::string& file);

 private:
  [[nodiscard]] bool is_below_without_links(const std::string& file) const;

  std::string path_;  // without slashes at its end
  // path_ with links resolved; computed on first use.
  std::optional<std::filesystem::path> canonical_;
};

// Finds symbolic links in a recording's folder and its subfolders that lead out of the folder.
[[nodiscard]] std::vector<OutsideFile> find_outside_links(const std::string& folder);
// Appends files to the member "outside_files" of the bundle's metadata: objects with "path" and "use" ("code"
// or "trace").
void list_outside_files(trace::TraceBundle& bundle, std::span<const OutsideFile> files);
// Returns the paths in "outside_files" that have this use.
[[nodiscard]] std::vector<std::string> outside_files(const trace::TraceBundle& bundle, OutsideUse use);

}  // namespace ptkit::formats
