// Files that were mapped in a recording by perf: found where they were, or by build-id where perf and others
// keep copies (tools/perf/util/build-id.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "trace/bundle.h"

namespace ptkit::formats::perf {

class Binaries {
 public:
  // `folder`: looked into first, if it is there; has what perf's own cache has (~/.debug).
  explicit Binaries(trace::TraceBundle& bundle, std::string folder = {})
      : bundle_(bundle), folder_(std::move(folder)) {}

  // perf's table of build-ids: `path` had this one.
  void has_build_id(const std::string& path, const std::string& build_id) { build_ids_[path] = build_id; }
  // The number of a file in the bundle; its contents are empty if it was not found. `build_id` may be empty.
  [[nodiscard]] std::int32_t find(const std::string& path, const std::string& build_id);
  // A sentence for each file that was not found, or is another one than was mapped.
  [[nodiscard]] std::vector<std::string> problems() const;

 private:
  [[nodiscard]] std::int32_t add(const std::string& path, const std::string& build_id);

  trace::TraceBundle& bundle_;
  std::string folder_;
  std::map<std::string, std::string> build_ids_;
  std::map<std::pair<std::string, std::string>, std::int32_t> found_;
  std::set<std::string> missing_;
};

}  // namespace ptkit::formats::perf
