// Files that were mapped in a recording by perf: found where they were, or by build-id where perf and others
// keep copies (tools/perf/util/build-id.c). For .cpp files of this folder only.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/missing_files.h"
#include "image/mapped_parts.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Memory that no file was mapped to.
[[nodiscard]] bool is_memory(const std::string& path);

class Binaries {
 public:
  // `own`: the recording's folder; a file elsewhere that the recording names has to be a program.
  // `beside`: looked into first, if it is there; has what perf's own cache has (~/.debug), and is believed.
  // `folders`: looked into next, for a file's path below them, its name, or its build-id.
  explicit Binaries(trace::TraceBundle& bundle, std::string own, std::string beside = {},
                    std::vector<std::string> folders = {})
      : bundle_(bundle), own_(std::move(own)), beside_(std::move(beside)), folders_(std::move(folders)) {}

  // perf's table of build-ids: `path` had this one.
  void has_build_id(const std::string& path, const std::string& build_id) { build_ids_[path] = build_id; }
  // The number of a file in the bundle; its contents are empty if it was not found. `build_id` may be empty.
  [[nodiscard]] std::int32_t find(const std::string& path, const std::string& build_id);
  // What the file of a region has at the place that is set there; without a size, all from there on. A
  // page that the file ends in is mapped whole; what lies after the end is no code. Of ELF and PE files the
  // segments alone are code; any other file is, if it lies in the recording's folder or one that was named.
  void map_contents(trace::CodeRegion& region);
  // perf-PID.map of a process of this machine, or of one whose files lie in a folder that was named: the
  // number of a file in the bundle that has its names, an address being the place in the file; -1: there is
  // none.
  [[nodiscard]] std::int32_t find_map(std::int64_t pid, bool is_here);
  // A file that was at this path, without a look at what it is; empty: it is not here.
  [[nodiscard]] trace::TraceBuffer contents_of(const std::string& path) const;
  // Adds a file that was not found to the list.
  void miss(const std::string& path) { missing_.try_emplace({path, {}}); }
  // Lists the files that were not found, or have another build-id than was mapped, in the bundle's metadata;
  // and those that were found where the recording says without a build-id to tell which ones they were.
  void list_missing();

 private:
  [[nodiscard]] std::int32_t add(const std::string& path, const std::string& build_id);
  [[nodiscard]] std::vector<std::string> candidates(const std::string& path,
                                                    const std::string& build_id) const;
  // Whether these are the file's contents; `other` gets what is wrong with them.
  [[nodiscard]] bool take(trace::TraceBuffer contents, const std::string& where, trace::ImageFile& file,
                          std::string& other);

  trace::TraceBundle& bundle_;
  std::string own_;
  std::string beside_;
  std::vector<std::string> folders_;
  std::map<std::string, std::string> build_ids_;
  std::map<std::pair<std::string, std::string>, std::int32_t> found_;
  std::map<std::int64_t, std::int32_t> maps_;                           // by pid
  std::map<std::pair<std::string, std::string>, std::string> missing_;  // reason, by path and build-id
  std::map<std::int32_t, std::vector<image::FilePart>> parts_;          // of files that are mapped
  std::vector<OutsideFile> outside_;
};

}  // namespace ptkit::formats::perf
