#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ptkit::base {
namespace {

// What a path names that is no regular file.
[[nodiscard]] const char* kind_of(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "is a folder";
  if (S_ISFIFO(mode)) return "is a FIFO";
  if (S_ISSOCK(mode)) return "is a socket";
  return "is a device";
}

[[nodiscard]] Failure no_regular_file(const std::string& path, mode_t mode) {
  return {Status::IO_ERROR, 0,
          path + ": " + kind_of(mode) + ", not a regular file; give a file with a copy of the bytes"};
}

[[nodiscard]] Failure cannot_open(const std::string& path) {
  return {Status::IO_ERROR, 0, path + ": cannot open: " + std::strerror(errno)};
}

}  // namespace

// open() may act on a device (a watchdog, a tape), so stat() comes first; another file may have taken its
// place by then, so O_NONBLOCK and fstat() follow.
Result<RegularFile> RegularFile::open(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return cannot_open(path);
  if (!S_ISREG(info.st_mode)) return no_regular_file(path, info.st_mode);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return cannot_open(path);
  RegularFile file(fd, 0);
  if (::fstat(fd, &info) != 0) return cannot_open(path);
  if (!S_ISREG(info.st_mode)) return no_regular_file(path, info.st_mode);
  file.size_ = static_cast<std::uint64_t>(info.st_size);
  return file;
}

RegularFile::~RegularFile() {
  if (fd_ >= 0) ::close(fd_);
}

RegularFile& RegularFile::operator=(RegularFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

std::size_t RegularFile::read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t size =
        ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    done += static_cast<std::size_t>(size);
  }
  return done;
}

}  // namespace ptkit::base
