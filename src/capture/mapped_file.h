// Files that processes have mapped, found again and opened.
//
// A recorder often has more rights than the processes that it records, and it reads their code some time
// after they mapped it. By then the owner of a process can have put a link, a FIFO or a device in the file's
// place, and /proc/PID/root with a link that begins with "/" ends in the recorder's own root. So a file is
// what was mapped, not what has its name:
//
// * /proc/PID/map_files/BEGIN-END is the mapped file itself, whatever its path shows by now. It needs
//   CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
// * Without these, the path is followed folder by folder and never through a link, and leads to a regular
//   file of the device and inode that were mapped; the build-id decides where a record has only that.
//   btrfs and overlayfs show other numbers in /proc/PID/maps than stat() gives: there the file is mapped
//   here, too, and /proc/self/maps shows its numbers.
//
// Nothing but regular files is opened: all others have been seen by O_PATH alone, which has no effect on
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "capture/tracee.h"
#include "trace/buffer.h"

namespace ptkit::capture {

struct MappedFile {
  enum class Found : std::uint8_t {
    FILE,
    NOTHING,  // or it may not be looked at: see `error`
    ANOTHER,  // another file has the path, or something that is no regular file
  };
  Found found = Found::NOTHING;
  int error = 0;  // errno
  Fd file;
};

// The file of a mapping, by O_PATH. `began_ns`, of CLOCK_REALTIME_COARSE: when recording began. A file of an
// inode that is not known to be mapped still may be another one by now, which got the number of one that was
// deleted: younger ones that not all users may read are refused.
[[nodiscard]] MappedFile locate_mapped(pid_t pid, const Mapping& mapping, std::int64_t began_ns);
// The file that a process has at a path, by O_PATH, where nothing but the path is known: of programs that run
// with the rights of the recorder.
[[nodiscard]] MappedFile locate_path(pid_t pid, const std::string& path);
// The same file for reading.
[[nodiscard]] MappedFile reopened(MappedFile located);

// What tells the file of a mapping from others that have had its path while recording went on, as compilers
// write them. Opens nothing.
[[nodiscard]] std::string key_of(pid_t pid, const Mapping& mapping);

// The first `bytes` of an open file, or all of it. What the file has no blocks for takes no memory; what it
// lost meanwhile is zero, and `shrunk` is set.
[[nodiscard]] trace::TraceBuffer read_whole(const Fd& file, std::uint64_t bytes, bool& shrunk);

}  // namespace ptkit::capture
