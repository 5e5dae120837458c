// Finds, opens and reads files that processes have mapped.
//
// A recorder often has more rights than the processes that it records, and it reads their code some time
// after they mapped it. Meanwhile the owner of a process may have replaced the file by a link, a FIFO or a
// device. A link that begins with "/" in /proc/PID/root leads to the recorder's own root. So the recorder
// opens the mapped file, not the file that now has its path:
//
// * /proc/PID/map_files/BEGIN-END is the mapped file itself. It needs CAP_SYS_ADMIN or
//   CAP_CHECKPOINT_RESTORE.
// * Without these, the path is followed folder by folder and never through a link. It must lead to a regular
//   file with the device and inode of the mapping. If a record has only a build-id, the build-id must match.
//   btrfs and overlayfs show other numbers in /proc/PID/maps than stat() returns. There the recorder maps the
//   file, too, and compares the numbers in /proc/self/maps.
//
// Only regular files are opened for reading. O_PATH has no effect on other files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "capture/linux/process/process.h"
#include "trace/buffer.h"

namespace ptkit::capture {

struct MappedFile {
  enum class Found : std::uint8_t {
    FILE,
    NOTHING,  // missing or not permitted: see `error`
    ANOTHER,  // the path leads to another file, or to no regular file
  };
  Found found = Found::NOTHING;
  int error = 0;  // errno
  Fd file;
};

// Returns the build-id of a regular file that is open for reading. The contents may be hostile.
using BuildIdOf = std::function<std::string(const Fd& file)>;

// Opens the file of a mapping by O_PATH. `build_id_of` is called if only the build-id identifies the file.
// `began_ns` (CLOCK_REALTIME_COARSE) is when recording began. If the file may no longer be mapped, a new file
// can have the inode number of a deleted one. So files that are younger than the recording and that not all
// users may read are refused.
[[nodiscard]] MappedFile locate_mapped(pid_t pid, const Mapping& mapping, std::int64_t began_ns,
                                       const BuildIdOf& build_id_of);
// Opens the file that a process has at a path by O_PATH. Only for programs with the rights of the recorder.
[[nodiscard]] MappedFile locate_path(pid_t pid, const std::string& path);
// Opens the file that a process has at a path by O_PATH, if it is the user's own: it belongs to `user`, and
// has no other name.
[[nodiscard]] MappedFile locate_own_file(pid_t pid, const std::string& path, uid_t user);
// Opens a located file for reading.
[[nodiscard]] MappedFile reopened(MappedFile located);

// A key that differs between files that had the same path during the recording (compilers replace files).
// Opens no file.
[[nodiscard]] std::string key_of(pid_t pid, const Mapping& mapping);

// The extents of a file (lseek() with SEEK_DATA, SEEK_HOLE). Holes may have any length and are skipped.
class FileExtents {
 public:
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // The extents in bytes [from, to).
  FileExtents(const Fd& file, std::uint64_t from, std::uint64_t to) : file_(file), at_(from), to_(to) {}

  [[nodiscard]] std::optional<Extent> next();

 private:
  const Fd& file_;
  std::uint64_t at_;
  std::uint64_t to_;
};

// Reads the first `bytes` bytes of a regular file that is open for reading. Holes take no memory. If the file
// has shrunk, the missing bytes are zero and `shrunk` is set. Uses only the system calls lseek(), pread() and
// mmap().
[[nodiscard]] trace::TraceBuffer read_whole(const Fd& file, std::uint64_t bytes, bool& shrunk);

}  // namespace ptkit::capture
