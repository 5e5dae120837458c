#include "formats/perf_write_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/files.h"

namespace ptkit::formats::perf {

namespace {

namespace fs = std::filesystem;

// A name that nobody else takes at the same time.
std::string name_beside(const std::string& path) {
  static unsigned counter = 0;
  return path + "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".part";
}

}  // namespace

base::Failure cannot_write(const std::string& path, const char* what, int cause) {
  return {base::Status::IO_ERROR, 0, path + ": cannot " + what + ": " + std::strerror(cause)};
}

Output::Output(std::string path, std::string written, std::FILE* file)
    : path_(std::move(path)), written_(std::move(written)), file_(file) {}

Output::Output(Output&& other) noexcept
    : path_(std::move(other.path_)),
      written_(std::exchange(other.written_, {})),
      file_(std::move(other.file_)),
      size_(other.size_),
      failure_(std::move(other.failure_)) {}

Output::~Output() {
  file_.reset();
  if (!written_.empty()) static_cast<void>(::unlink(written_.c_str()));
}

base::Result<Output> Output::create(const std::string& path) {
  struct stat info {};
  const bool there = ::stat(path.c_str(), &info) == 0;
  if (there && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode))) {
    return base::Failure{base::Status::IO_ERROR, 0,
                         path + ": is a pipe: what is written first is known last; name a file"};
  }
  if (there && S_ISDIR(info.st_mode)) return cannot_write(path, "create", EISDIR);
  const bool in_place = there && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode));
  const std::string written = in_place ? path : name_beside(path);
  const int flags = O_WRONLY | O_CLOEXEC | (in_place ? 0 : O_CREAT | O_EXCL);
  const int number = ::open(written.c_str(), flags, 0666);
  std::FILE* const file = number >= 0 ? ::fdopen(number, "wb") : nullptr;
  if (file == nullptr) {
    const int cause = errno;
    if (number >= 0) static_cast<void>(::close(number));
    return cannot_write(path, "create", cause);
  }
  return Output(path, in_place ? std::string() : written, file);
}

void Output::fail(const char* what) {
  if (!failure_) failure_ = cannot_write(path_, what, errno);
}

void Output::put(base::Bytes bytes) {
  if (failure_) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) return fail("write");
  size_ += bytes.size();
}

void Output::put_at(std::uint64_t offset, base::Bytes bytes) {
  if (failure_) return;
  const bool there = ::fseeko(file_.get(), static_cast<::off_t>(offset), SEEK_SET) == 0;
  if (!there || std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() ||
      ::fseeko(file_.get(), static_cast<::off_t>(size_), SEEK_SET) != 0)
    fail("write");
}

void Output::skip_to(std::uint64_t offset) {
  if (failure_ || offset <= size_) return;
  if (::fseeko(file_.get(), static_cast<::off_t>(offset), SEEK_SET) != 0) return fail("write");
  size_ = offset;
}

std::optional<base::Failure> Output::keep() {
  // Some file systems say only here that there was no room.
  if (!failure_ && std::fclose(file_.release()) != 0) fail("write");
  if (!failure_ && !written_.empty()) {
    if (::rename(written_.c_str(), path_.c_str()) == 0) {
      written_.clear();
    } else {
      fail("create");
    }
  }
  return failure_;
}

OutputFolder::OutputFolder(std::string path, std::string written)
    : path_(std::move(path)), written_(std::move(written)) {}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)), written_(std::exchange(other.written_, {})) {}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!written_.empty()) fs::remove_all(written_, ignored);
}

base::Result<OutputFolder> OutputFolder::create(const std::string& path, const std::string& sign) {
  const std::string plain = without_slashes(path);
  std::error_code error;
  if (fs::is_directory(plain, error) && !fs::exists(plain + "/" + sign, error)) {
    return base::Failure{base::Status::IO_ERROR, 0,
                         plain + ": is a folder that ptkit did not write; name another one"};
  }
  std::string written = name_beside(plain);
  if (::mkdir(written.c_str(), 0777) != 0) return cannot_write(plain, "create", errno);
  return OutputFolder(plain, std::move(written));
}

std::optional<base::Failure> OutputFolder::keep() {
  std::error_code error;
  std::string old;
  if (fs::exists(fs::symlink_status(path_, error))) {
    old = name_beside(path_);
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

}  // namespace ptkit::formats::perf
