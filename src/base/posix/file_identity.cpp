#include "base/system/file_identity.h"

#include <sys/stat.h>

namespace ptkit::base {

std::optional<FileIdentity> file_identity(const std::string& path) {
  struct stat seen {};
  if (::stat(path.c_str(), &seen) != 0 || !S_ISREG(seen.st_mode)) return std::nullopt;
  constexpr std::int64_t kSecond = 1'000'000'000;
  return FileIdentity{seen.st_dev, seen.st_ino, static_cast<std::uint64_t>(seen.st_size),
                      seen.st_mtim.tv_sec * kSecond + seen.st_mtim.tv_nsec};
}

}  // namespace ptkit::base
