#include "base/posix/unnamed_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ptkit::base {

namespace {

constexpr mode_t kMode = 0600;

Failure failed(const std::string& folder, const std::string& what) {
  return {Status::IO_ERROR, 0, folder + ": " + what};
}

// Some file systems have no O_TMPFILE. There the file has a name for a moment.
Fd open_unnamed(const std::string& folder) {
  Fd file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, kMode));
  if (file.get() >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string name = folder + "/.ptkit-XXXXXX";
  Fd named(::mkostemp(name.data(), O_CLOEXEC));  // O_EXCL, mode 0600
  if (named.get() >= 0) static_cast<void>(::unlink(name.c_str()));
  return named;
}

bool is_in_memory(int file) noexcept {
  struct statfs info {};
  if (::fstatfs(file, &info) != 0) return false;
  const auto type = static_cast<unsigned long>(info.f_type);
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == HUGETLBFS_MAGIC;
}

}  // namespace

Result<UnnamedFile> UnnamedFile::create_in(const std::string& folder) {
  Fd file = open_unnamed(folder);
  if (file.get() < 0) return failed(folder, std::string("cannot create a file: ") + std::strerror(errno));
  if (is_in_memory(file.get())) return failed(folder, "its files are in memory (tmpfs)");
  return UnnamedFile(folder, std::move(file));
}

Result<UnnamedFile> UnnamedFile::create() {
  if (const char* const folder = std::getenv("TMPDIR"); folder != nullptr && *folder != '\0')
    return create_in(folder);
  auto file = create_in("/var/tmp");
  if (file.ok()) return file;
  auto other = create_in("/tmp");
  return other.ok() ? std::move(other) : std::move(file);
}

std::optional<Failure> UnnamedFile::reserve(std::uint64_t offset, std::uint64_t bytes) const {
  struct statvfs info {};
  if (::fstatvfs(file_.get(), &info) == 0) {
    const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
    const std::uint64_t usable = free - free / 8;
    if (bytes > usable) {
      return failed(folder_, std::to_string(usable) + " bytes of the disk can be used, and " +
                                 std::to_string(bytes) + " are needed");
    }
  }
  const auto begin = static_cast<::off_t>(offset);
  const auto size = static_cast<::off_t>(bytes);
  if (::fallocate(file_.get(), 0, begin, size) == 0) return {};
  // Some file systems take blocks only when they are written.
  struct stat now {};
  if (errno == EOPNOTSUPP && ::fstat(file_.get(), &now) == 0 &&
      (now.st_size >= begin + size || ::ftruncate(file_.get(), begin + size) == 0))
    return {};
  return failed(folder_, "no space for " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
}

bool UnnamedFile::write(std::uint64_t offset, Bytes bytes) const noexcept {
  while (!bytes.empty()) {
    const ::ssize_t done = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<::off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return true;
}

}  // namespace ptkit::base
