// Files with debug information that all traces of this process share.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "code/source/dwarf/debug_info.h"
#include "trace/buffer.h"

namespace ptkit::code::dwarf {

// With debug files, as in /usr/lib/debug; also paths of debug files.
using Folders = std::vector<std::string>;

// An ELF file. Thread-safe.
class SharedFile {
 public:
  SharedFile(std::string path, trace::TraceBuffer contents);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const trace::TraceBuffer& contents() const noexcept { return contents_; }
  [[nodiscard]] base::Bytes bytes() const noexcept { return contents_.bytes(); }
  [[nodiscard]] const std::string& build_id() const noexcept { return build_id_; }
  // The debug information; null: none. Read at the first call, which says where a file that it refers to is
  // looked for.
  [[nodiscard]] const DebugInfo* debug_info(const Folders& folders) const;
  // After debug_info(): the name of a file that it refers to and that was not found; empty: none.
  [[nodiscard]] const std::string& missing_part() const noexcept { return missing_part_; }

 private:
  std::string path_;
  trace::TraceBuffer contents_;
  std::string build_id_;
  mutable std::once_flag once_;  // guards the others
  mutable std::shared_ptr<const DebugInfo> info_;
  mutable std::string missing_part_;
};

// The file at a path; null if it is no regular file. Traces of this process share the last 256 of them as
// long as they do not change.
[[nodiscard]] std::shared_ptr<const SharedFile> shared_file(const std::string& path);

}  // namespace ptkit::code::dwarf
