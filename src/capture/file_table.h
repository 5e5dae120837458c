// The files that executed code came from: their numbers in the bundle, build-ids and names.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "trace/bundle.h"

namespace ptkit::capture {

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
    std::string build_id;
  };

  // `key` stands for the file: its path, or what its path does not tell besides. `contents` is called once.
  [[nodiscard]] Entry find(const std::string& key, const std::string& path,
                           const std::function<trace::TraceBuffer()>& contents);

 private:
  struct Known {
    std::int32_t number = -1;
    std::string build_id;
  };
  std::map<std::string, Known> files_;
};

}  // namespace ptkit::capture
