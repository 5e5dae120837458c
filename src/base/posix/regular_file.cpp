#include "base/posix/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace ptkit::base {
namespace {

[[nodiscard]] Failure no_regular_file(const std::string& path, mode_t mode) {
  return {Status::IO_ERROR, 0,
          path + ": is " + file_kind(mode) + ", not a regular file; give a file with a copy of the bytes"};
}

[[nodiscard]] Failure cannot_open(const std::string& path) {
  return {Status::IO_ERROR, 0, path + ": cannot open: " + std::strerror(errno)};
}

}  // namespace

const char* file_kind(mode_t mode) noexcept {
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

// open() may have effects on a device (a watchdog, a tape), so stat() comes first. Another file may replace
// it before open(), so O_NONBLOCK and fstat() follow.
Result<RegularFile> RegularFile::open(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return cannot_open(path);
  if (!S_ISREG(info.st_mode)) return no_regular_file(path, info.st_mode);
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return cannot_open(path);
  if (!S_ISREG(info.st_mode)) return no_regular_file(path, info.st_mode);
  return RegularFile(std::move(file), static_cast<std::uint64_t>(info.st_size));
}

}  // namespace ptkit::base
