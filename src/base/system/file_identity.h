// Which file a path names, and whether the file is still the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ptkit::base {

// Two files that are equal here are one file that was not changed.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t number = 0;  // of the file on its device (inode number, file index)
  std::uint64_t size = 0;    // bytes
  std::int64_t time_ns = 0;  // last modification, since 1970

  [[nodiscard]] bool operator==(const FileIdentity&) const noexcept = default;
};

// nullopt: there is no regular file at the path.
[[nodiscard]] std::optional<FileIdentity> file_identity(const std::string& path);

}  // namespace ptkit::base
