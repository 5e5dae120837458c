#include "base/posix/new_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/posix/regular_file.h"
#include "base/system/new_contents.h"

namespace ptkit::base {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0600;
constexpr int kTries = 16;  // attempts if random names exist already

}  // namespace

std::string random_file_name() {
  std::array<unsigned char, 8> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  std::string name = ".ptkit-";
  for (const unsigned char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    name += kDigits[byte >> 4U];
    name += kDigits[byte & 15U];
  }
  return name;
}

std::optional<Failure> refused_name(int folder, const std::string& name, const std::string& path,
                                    bool is_folder) {
  struct stat info {};
  if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(info.st_mode)) return {};
  if (is_folder && S_ISDIR(info.st_mode)) return {};
  return Failure{
      Status::IO_ERROR, 0,
      path + ": is " + file_kind(info.st_mode) + ", and only regular files are written; give another name"};
}

Failure cannot_write(const std::string& path, const char* what, int cause) {
  return {Status::IO_ERROR, 0, path + ": cannot " + what + ": " + std::strerror(cause)};
}

std::optional<Failure> refused_output(const std::string& path) {
  return refused_name(AT_FDCWD, path, path, false);
}

void set_owner(int fd, const std::optional<Owner>& owner) noexcept {
  if (owner && ::fchown(fd, owner->user, owner->group) != 0) errno = 0;
}

NewFile::NewFile(std::string path, Fd folder, std::string name, std::string written, Fd file)
    : path_(std::move(path)),
      folder_(std::move(folder)),
      name_(std::move(name)),
      written_(std::move(written)),
      file_(std::move(file)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      folder_(std::move(other.folder_)),
      name_(std::move(other.name_)),
      written_(std::exchange(other.written_, {})),
      file_(std::move(other.file_)) {}

NewFile::~NewFile() {
  if (!written_.empty()) static_cast<void>(::unlinkat(folder_.get(), written_.c_str(), 0));
}

Result<NewFile> NewFile::create(const std::string& path) {
  const fs::path whole(path);
  const std::string name = whole.filename().string();
  if (name.empty()) return cannot_write(path, "create", path.empty() ? ENOENT : EISDIR);
  const std::string parent = whole.parent_path().string();
  Fd folder(::open(parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return cannot_write(path, "create", errno);
  if (auto refused = refused_name(folder.get(), name, path, false)) return *refused;
  for (int i = 0; i < kTries; ++i) {
    std::string written = random_file_name();
    if (written.empty()) break;
    Fd file(::openat(folder.get(), written.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     kFileMode));
    if (file.get() >= 0) return NewFile(path, std::move(folder), name, std::move(written), std::move(file));
    if (errno != EEXIST) break;
  }
  return cannot_write(path, "create", errno);
}

std::optional<Failure> NewFile::rename() {
  if (::renameat(folder_.get(), written_.c_str(), folder_.get(), name_.c_str()) != 0)
    return cannot_write(path_, "create", errno);
  written_.clear();
  return std::nullopt;
}

std::optional<Failure> write_new_file(const std::string& path, Bytes bytes) {
  auto created = NewFile::create(path);
  if (!created.ok()) return created.failure();
  NewFile& file = created.value();
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.fd(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return cannot_write(path, "write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  set_owner(file.fd(), sudo_caller());
  return file.rename();
}

Result<unsigned> mode_of_new_file(const std::string& path) {
  constexpr mode_t kPermissions = 07777;
  const auto file = NewFile::create(path);
  if (!file.ok()) return file.failure();
  struct stat info {};
  return ::fstat(file.value().fd(), &info) == 0 ? unsigned{info.st_mode & kPermissions} : 0U;
}

}  // namespace ptkit::base
