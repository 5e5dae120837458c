// Finds the files that a recording by perf mapped: at their paths, or by build-id in the caches of perf,
// debuginfod and debug packages (tools/perf/util/build-id.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/common/missing_files.h"
#include "image/mapped_parts.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Returns true for anonymous memory, which has no file.
[[nodiscard]] bool is_memory(const std::string& path);

class Binaries {
 public:
  // `own`: the recording's folder. A file outside of it that the recording names must be ELF or PE.
  // `debug_folder`: folder with the layout of ~/.debug. It is searched first, and its files are not checked.
  // `folders`: searched next for a file's path below them, its name, or its build-id.
  explicit Binaries(trace::TraceBundle& bundle, std::string own, std::string debug_folder = {},
                    std::vector<std::string> folders = {})
      : bundle_(bundle),
        own_(std::move(own)),
        debug_folder_(std::move(debug_folder)),
        folders_(std::move(folders)) {}

  // Adds an entry of perf's build-id table.
  void has_build_id(const std::string& path, const std::string& build_id) { build_ids_[path] = build_id; }
  // Returns the index of a file in the bundle. Its contents are empty if no file was found. `build_id` may be
  // empty.
  [[nodiscard]] std::int32_t find(const std::string& path, const std::string& build_id);
  // Sets a region's bytes from its file at the region's file offset; a size of 0 becomes the rest of the
  // file. The kernel maps whole pages: bytes after the end of the file are no code. Only the segments of ELF
  // and PE files are code. Other files are code if they lie in the recording's folder or one of `folders`.
  void map_contents(trace::CodeRegion& region);
  // Finds perf-PID.map in /tmp (for a process of this machine) or in `folders`. Returns the index of a file
  // in the bundle with the names of JIT code, which uses addresses as file offsets; -1: no such file.
  [[nodiscard]] std::int32_t find_map(std::int64_t pid, bool is_here);
  // Returns the contents of the file of this path, without any check; empty: not found.
  [[nodiscard]] trace::TraceBuffer contents_of(const std::string& path) const;
  // Adds a file to the list of missing files.
  void add_missing(const std::string& path) { missing_.try_emplace({path, {}}); }
  // Writes two lists to the bundle's metadata: files that are missing or have a wrong build-id, and files
  // that were found at the recorded path without a build-id that identifies them.
  void list_missing();

 private:
  [[nodiscard]] std::int32_t add(const std::string& path, const std::string& build_id);
  [[nodiscard]] std::vector<std::string> candidates(const std::string& path,
                                                    const std::string& build_id) const;
  // Sets the file's contents if they pass the checks. Else `reason` says which check failed.
  [[nodiscard]] bool accept(trace::TraceBuffer contents, const std::string& where, trace::ImageFile& file,
                            std::string& reason);

  trace::TraceBundle& bundle_;
  RecordingFolder own_;
  std::string debug_folder_;
  std::vector<std::string> folders_;
  std::map<std::string, std::string> build_ids_;
  std::map<std::pair<std::string, std::string>, std::int32_t> found_;
  std::map<std::int64_t, std::int32_t> maps_;                           // by pid
  std::map<std::pair<std::string, std::string>, std::string> missing_;  // reason, by path and build-id
  std::map<std::int32_t, std::vector<image::FilePart>> parts_;          // by file index
  std::vector<OutsideFile> outside_;
};

}  // namespace ptkit::formats::perf
