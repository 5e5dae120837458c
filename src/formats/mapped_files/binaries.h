// Finds the files that a recording by perf mapped: at their paths, or by build-id in the caches of perf,
// debuginfod and debug packages (tools/perf/util/build-id.c). Adds the code of mapped files, for readers
// that know mappings and not their times.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "code/image/files/segments.h"
#include "formats/common/missing_files.h"
#include "formats/mapped_files/mappings.h"
#include "trace/build_id.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

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
  void has_build_id(const std::string& path, trace::BuildId id) { build_ids_[path] = std::move(id); }
  // The recording is of another architecture than x86: no file is code.
  void refuse_code() noexcept { is_foreign_ = true; }
  // The recording was made on this machine: a file at its recorded path is the one that was mapped only if
  // its number on its device is the recorded one.
  void is_here() noexcept { is_here_ = true; }
  // The file that the recorder wrote last. Files that changed after it are listed in a warning.
  void recorded_at(const std::string& recording);
  // Tells of a mapping before the first find(): without a build-id, a file has to have the parts that were
  // mapped.
  void expect(const Mapping& mapping) { mappings_.add(mapping); }
  // Returns the index of a file in the bundle. Its contents are empty if no file was found, or if all files
  // contradict the recording.
  [[nodiscard]] std::int32_t find(const Mapping& mapping);
  // Returns the recorded build-id of the mapped file; empty: none.
  [[nodiscard]] trace::BuildId build_id_of(const Mapping& mapping) const;
  // The parts of the mapped file at the mapping's load address, and at others: see Mappings.
  [[nodiscard]] std::vector<code::image::FileMapping> parts_of(const Mapping& mapping) const {
    return mappings_.parts_of(mapping);
  }
  [[nodiscard]] std::vector<std::vector<code::image::FileMapping>> other_parts_of(
      const Mapping& mapping) const {
    return mappings_.other_parts_of(mapping);
  }
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
  void add_missing(const std::string& path) { missing_.try_emplace({path, {}, {}}); }
  // Writes two lists to the bundle's metadata: files that are missing or have a wrong build-id, and files
  // that were found at the recorded path without a build-id that identifies them. Warns of files that
  // contradict the recording, and of files without a build-id that changed later.
  void list_missing();

 private:
  // A file that was looked for. Mappings without a build-id are of one file if all that was recorded of them
  // is equal.
  struct Wanted {
    std::string path;
    trace::BuildId id;
    FileNumber number;
    std::vector<code::image::FileMapping> parts;
    std::vector<std::vector<code::image::FileMapping>> others;  // parts at other load addresses
    [[nodiscard]] bool operator<(const Wanted& other) const;
  };
  [[nodiscard]] std::int32_t add(const Wanted& wanted);
  void note_time(const std::string& location);
  void warn_of_doubts();
  [[nodiscard]] std::vector<std::string> candidates(const std::string& path, const trace::BuildId& id) const;
  // Why the last candidate was refused, and what one of them contradicts.
  struct Refusal {
    std::string reason;
    std::string contradiction;
  };
  // Sets the file's contents if they pass the checks. Else `refusal` says which check failed.
  [[nodiscard]] bool accept(trace::TraceBuffer contents, const std::string& where, const Wanted& wanted,
                            trace::ImageFile& file, Refusal& refusal);
  [[nodiscard]] std::string contradiction(base::Bytes contents, const std::string& where,
                                          const Wanted& wanted) const;

  trace::TraceBundle& bundle_;
  RecordingFolder own_;
  std::string debug_folder_;
  std::vector<std::string> folders_;
  bool is_foreign_ = false;
  bool is_here_ = false;
  std::int64_t recorded_ns_ = std::numeric_limits<std::int64_t>::max();  // since 1970
  Mappings mappings_;
  std::map<std::string, trace::BuildId> build_ids_;  // by path
  std::map<Wanted, std::int32_t> found_;
  // By path, build-id and location: what different mappings have in common.
  std::map<std::tuple<std::string, trace::BuildId, std::string>, std::int32_t> by_location_;
  std::map<std::int64_t, std::int32_t> maps_;                        // by pid
  using FileKey = std::tuple<std::string, std::string, FileNumber>;  // path, build-id, number
  std::map<FileKey, std::string> missing_;                           // reason
  std::set<FileKey> accepted_;
  std::map<std::string, std::pair<FileKey, std::string>> refused_;    // file and contradiction, by path
  std::set<std::string> newer_;                                       // paths of files that changed later
  std::map<std::int32_t, std::vector<code::image::FilePart>> parts_;  // by file index
  std::vector<OutsideFile> outside_;
};

struct FileMapping {
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t owner = 0;  // page tables: mappings of one owner are of one process
  std::uint64_t address = 0;
  std::uint64_t size = 0;  // 0: up to the end of the file
  std::uint64_t file_offset = 0;
  std::string path;
};

struct MappedFileOptions {
  std::string own;                      // the recording's folder
  std::vector<std::string> binaries{};  // folders with copies of the files
  std::string recorded_at{};            // the file that the recorder wrote last
};

// Later mappings of a space hide earlier ones. Lists files that are missing.
void add_mapped_files(trace::TraceBundle& bundle, const MappedFileOptions& options,
                      std::span<const FileMapping> mappings);

}  // namespace ptkit::formats::perf
