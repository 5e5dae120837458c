#include "base/system/new_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/posix/new_file.h"

namespace ptkit::base {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kFolderMode = 0700;
constexpr int kFolderTries = 16;  // attempts if random names exist already

}  // namespace

NewFolder::NewFolder(std::string path, std::string written)
    : path_(std::move(path)), written_(std::move(written)) {}

NewFolder::NewFolder(NewFolder&& other) noexcept
    : path_(std::move(other.path_)), written_(std::exchange(other.written_, {})) {}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!written_.empty()) fs::remove_all(written_, ignored);
}

Result<NewFolder> NewFolder::create(const std::string& path) {
  if (auto refused = refused_name(AT_FDCWD, path, path, true)) return *refused;
  const fs::path parent = fs::path(path).parent_path();
  for (int i = 0; i < kFolderTries; ++i) {
    const std::string name = random_file_name();
    if (name.empty()) break;
    std::string written = (parent / name).string();
    if (::mkdir(written.c_str(), kFolderMode) == 0) return NewFolder(path, std::move(written));
    if (errno != EEXIST) break;
  }
  return cannot_write(path, "create", errno);
}

std::optional<Failure> create_subfolder(const std::string& path) {
  if (::mkdir(path.c_str(), kFolderMode) == 0 || errno == EEXIST) return std::nullopt;
  return cannot_write(path, "create", errno);
}

std::optional<Failure> NewFolder::rename(const std::optional<Owner>& owner) {
  std::error_code error;
  if (owner) {  // the folder's mode is 0700 until here: no other user can change its contents
    for (const fs::directory_entry& one : fs::recursive_directory_iterator(written_, error))
      static_cast<void>(::lchown(one.path().c_str(), owner->user, owner->group));
    set_owner(Fd(::open(written_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)).get(), owner);
  }
  std::string old;
  if (fs::exists(fs::symlink_status(path_, error))) {
    old = (fs::path(path_).parent_path() / random_file_name()).string();
    if (::rename(path_.c_str(), old.c_str()) != 0) return cannot_write(path_, "replace", errno);
  }
  if (::rename(written_.c_str(), path_.c_str()) != 0) {
    const int cause = errno;
    if (!old.empty()) static_cast<void>(::rename(old.c_str(), path_.c_str()));
    return cannot_write(path_, "create", cause);
  }
  written_.clear();
  if (!old.empty()) fs::remove_all(old, error);
  return std::nullopt;
}

}  // namespace ptkit::base
