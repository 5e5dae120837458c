// Reads code and symbols from mapped files and from the memory of processes. A process chooses the length of
// its files and mappings, so all reads have limits.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "capture/linux/files/file_parser.h"
#include "capture/linux/files/mapped_file.h"
#include "trace/buffer.h"
#include "trace/warning.h"

namespace ptkit::capture {

// Limits in bytes. Holes of files do not count.
struct ReadLimits {
  std::uint64_t file_bytes = std::uint64_t{1} << 30U;  // of one file
  std::uint64_t all_bytes = std::uint64_t{8} << 30U;   // of all files and mappings
};

// Thread-safe.
class CodeReader {
 public:
  explicit CodeReader(FileParser& parser, ReadLimits limits = {});

  // Opens the file of a mapping for reading.
  [[nodiscard]] MappedFile open(pid_t pid, const Mapping& mapping) const;
  // Reads all of an open file. `path` is for warnings.
  [[nodiscard]] trace::TraceBuffer read(const MappedFile& file, const std::string& path);
  // Parses an open file. If request.file_bytes is 0, all of it.
  [[nodiscard]] ParsedFile parse(const MappedFile& file, const std::string& path, ParseRequest request);
  // Parses the build-id and symbols of an image in a process's memory ([vdso]).
  [[nodiscard]] ParsedFile parse_memory(base::Bytes memory, const std::string& name);
  // Receives a chunk of a file or of memory, and its offset from the requested address.
  using Take = std::function<void(std::uint64_t at, trace::TraceBuffer bytes)>;
  void read_part(const MappedFile& file, const std::string& path, std::uint64_t offset, std::uint64_t bytes,
                 const Take& take);
  // Reads the pages of a mapping that are present in memory. Reading another page can block: its file system
  // or userfaultfd may take any time.
  void read_memory(pid_t pid, const Mapping& mapping, const Take& take);

  // Warnings about files that were truncated or not parsed.
  [[nodiscard]] std::vector<trace::Warning> warnings() const;

 private:
  [[nodiscard]] std::uint64_t grant_whole(const MappedFile& file, const std::string& path);
  [[nodiscard]] std::uint64_t grant(const std::string& path, std::uint64_t wanted, std::uint64_t limit);
  void has_shrunk(const std::string& path);

  FileParser& parser_;
  ReadLimits limits_;
  std::int64_t began_ns_;
  mutable std::mutex mutex_;  // guards what follows
  std::uint64_t read_bytes_ = 0;
  std::set<std::string> cut_;
  std::set<std::string> shrunk_;
};

}  // namespace ptkit::capture
