// Files and folders that are written under a random name and renamed when they are ready: other users can
// neither read them nor have something else written or replaced.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace ptkit::base {

struct Owner {
  uid_t user = 0;
  gid_t group = 0;
};

// The user that called sudo (SUDO_UID, SUDO_GID), where this process runs as root; otherwise nothing.
[[nodiscard]] std::optional<Owner> sudo_caller();

// Gives an open file to a user. Nothing happens where the file system has no owners.
void give_to(int fd, const std::optional<Owner>& owner) noexcept;

// Why a file is not written at `path`: a link, a folder, a device, a FIFO is there.
[[nodiscard]] std::optional<Failure> refused_output(const std::string& path);

// Permissions of an open file.
[[nodiscard]] unsigned mode_of(int fd) noexcept;

class NewFile {
 public:
  // Mode 0600, in the folder of `path`. Refused if `path` is there and is no regular file (a link, a device,
  // a FIFO).
  [[nodiscard]] static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();  // removes a file that was not renamed

  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  [[nodiscard]] Fd release() noexcept { return std::move(file_); }  // the name is still to be given
  // Gives the file its name; an earlier file of that name is replaced.
  [[nodiscard]] std::optional<Failure> rename();

 private:
  NewFile(std::string path, Fd folder, std::string name, std::string written, Fd file);

  std::string path_;
  Fd folder_;
  std::string name_;
  std::string written_;  // the name until then; empty: renamed
  Fd file_;
};

// A folder (mode 0700) beside the one that it becomes.
class NewFolder {
 public:
  [[nodiscard]] static Result<NewFolder> create(const std::string& path);
  NewFolder(NewFolder&& other) noexcept;
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  NewFolder& operator=(NewFolder&&) = delete;
  ~NewFolder();  // removes it with all that is in it, if it was not renamed

  [[nodiscard]] const std::string& written() const noexcept { return written_; }  // the path until then
  // Gives the folder its name, and all that is in it to `owner`. A file or folder of that name is replaced.
  [[nodiscard]] std::optional<Failure> rename(const std::optional<Owner>& owner);

 private:
  NewFolder(std::string path, std::string written);

  std::string path_;
  std::string written_;
};

// A folder (mode 0700) within one that is being written; it may be there.
[[nodiscard]] std::optional<Failure> create_subfolder(const std::string& path);

// "PATH: cannot WHAT: cause".
[[nodiscard]] Failure cannot_write(const std::string& path, const char* what, int cause);

}  // namespace ptkit::base
