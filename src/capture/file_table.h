// The files that executed code came from: their numbers in the bundle, build-ids and names.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "trace/bundle.h"

namespace ptkit::capture {

// A file as process `pid` sees it, which may be in another root; empty if it cannot be read.
[[nodiscard]] trace::TraceBuffer read_file_of(pid_t pid, const std::string& path);

// The last part of a path.
[[nodiscard]] std::string base_name(const std::string& path);
// Whether a user means this file: by its whole path, or by the last part of it.
[[nodiscard]] bool names_file(const std::string& wanted, const std::string& path);

class FileTable {
 public:
  struct Entry {
    std::int32_t number = -1;
    std::optional<trace::ImageFile>
        fresh;  // if this is the first one who asks: what the bundle has to be told
  };

  // `key` stands for the file: its path, or what its path does not tell besides. `contents` is called once.
  [[nodiscard]] Entry find(const std::string& key, const std::string& path,
                           const std::function<trace::TraceBuffer()>& contents);

 private:
  std::map<std::string, std::int32_t> numbers_;
};

}  // namespace ptkit::capture
