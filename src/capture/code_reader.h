// Reads code and names of files that processes have mapped, and of their memory, as far as limits go: how
// long a file or a mapping is, its process decides.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "capture/mapped_file.h"
#include "trace/buffer.h"

namespace ptkit::capture {

// Holes of files count for nothing.
struct ReadLimits {
  std::uint64_t file_bytes = std::uint64_t{1} << 30U;  // that are read of one file at a time
  std::uint64_t all_bytes = std::uint64_t{8} << 30U;   // in all
};

// For any number of threads.
class CodeReader {
 public:
  explicit CodeReader(ReadLimits limits = {});

  // For reading.
  [[nodiscard]] MappedFile open(pid_t pid, const Mapping& mapping) const;
  // All of an open file, for its names; `path` is for warnings.
  [[nodiscard]] trace::TraceBuffer read(const MappedFile& file, const std::string& path);
  // Parts of a file or of memory, by their offset from what was asked for.
  using Take = std::function<void(std::uint64_t at, trace::TraceBuffer bytes)>;
  void read_part(const MappedFile& file, const std::string& path, std::uint64_t offset, std::uint64_t bytes,
                 const Take& take);
  // What a process has in memory of a mapping: pages that it has not touched are left out, as whatever gives
  // them their bytes may take any time for that.
  void read_memory(pid_t pid, const Mapping& mapping, const Take& take);

  // What was not read as a whole, by name.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  [[nodiscard]] std::uint64_t grant(const std::string& path, std::uint64_t wanted, std::uint64_t limit);
  void has_shrunk(const std::string& path);

  ReadLimits limits_;
  std::int64_t began_ns_;
  mutable std::mutex mutex_;  // guards what follows
  std::uint64_t read_bytes_ = 0;
  std::set<std::string> cut_;
  std::set<std::string> shrunk_;
};

}  // namespace ptkit::capture
