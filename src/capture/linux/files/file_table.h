// The files of executed code: their numbers in the bundle, build-ids, symbols and bounds of functions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "capture/linux/files/parse_request.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// The last part of a path.
[[nodiscard]] std::string base_name(const std::string& path);
// Whether a user's file name means this path: it is the whole path or its last part.
[[nodiscard]] bool names_file(const std::string& name, const std::string& path);

class FileTable {
 public:
  struct Entry {
    std::int32_t number = -1;
    // Set only by the first find() of the key. The caller writes it to the bundle.
    std::optional<trace::ImageFile> fresh;
    std::string build_id;
  };

  // `key` identifies the file: its path, with more text where several files have the same path. find() calls
  // `parse` once for each key, for the build-id and symbols.
  [[nodiscard]] Entry find(const std::string& key, const std::string& path,
                           const std::function<ParsedFile()>& parse);

 private:
  struct CachedFile {
    std::int32_t number = -1;
    std::string build_id;
  };
  std::map<std::string, CachedFile> files_;
};

}  // namespace ptkit::capture
