#include "trace/file_cache.h"

#include <sys/stat.h>

namespace ptkit::trace {

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat seen {};
  if (::stat(path.c_str(), &seen) != 0 || !S_ISREG(seen.st_mode)) return std::nullopt;
  return FileIdentity(seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtim.tv_sec, seen.st_mtim.tv_nsec);
}

}  // namespace ptkit::trace
