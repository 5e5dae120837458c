// Files and folders that are written under a random name and renamed when complete. Other users can neither
// read them nor redirect the writes to another file.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/posix/fd.h"
#include "base/status.h"
#include "base/system/owner.h"

namespace ptkit::base {

// Changes the owner of an open file. Has no effect if the file system has no owners.
void set_owner(int fd, const std::optional<Owner>& owner) noexcept;

class NewFile {
 public:
  // Creates the file with mode 0600 in the folder of `path`. Fails if `path` exists and is no regular file (a
  // link, a device, a FIFO).
  [[nodiscard]] static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // removes a file that was not renamed

  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  [[nodiscard]] Fd release() noexcept { return std::move(file_); }  // rename() is still needed
  // Renames the file to its name and replaces an earlier file.
  [[nodiscard]] std::optional<Failure> rename();

 private:
  NewFile(std::string path, Fd folder, std::string name, std::string written, Fd file);

  std::string path_;
  Fd folder_;
  std::string name_;
  std::string written_;  // the random name; empty after rename()
  Fd file_;
};

// A folder (mode 0700) with a random name beside its final path.
class NewFolder {
 public:
  [[nodiscard]] static Result<NewFolder> create(const std::string& path);
  NewFolder(NewFolder&& other) noexcept;
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  NewFolder& operator=(NewFolder&&) = delete;
  ~NewFolder();  // removes the folder and its contents unless it was renamed

  [[nodiscard]] const std::string& written() const noexcept { return written_; }  // the random path
  // Changes the owner of all files in the folder and renames the folder. Replaces a file or folder of that
  // name.
  [[nodiscard]] std::optional<Failure> rename(const std::optional<Owner>& owner);

 private:
  NewFolder(std::string path, std::string written);

  std::string path_;
  std::string written_;
};

// Creates a folder (mode 0700) inside a NewFolder. It may exist already.
[[nodiscard]] std::optional<Failure> create_subfolder(const std::string& path);

// "PATH: cannot WHAT: cause".
[[nodiscard]] Failure cannot_write(const std::string& path, const char* what, int cause);

}  // namespace ptkit::base
