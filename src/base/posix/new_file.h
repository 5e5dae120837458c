// Files that are written under a random name and renamed when complete. Other users can neither read them nor
// redirect the writes to another file.
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

// An unpredictable name; empty: the system has no random bytes.
[[nodiscard]] std::string random_file_name();

// The failure if `name` in `folder` exists and is no regular file; with `is_folder`, it may be a folder, too.
[[nodiscard]] std::optional<Failure> refused_name(int folder, const std::string& name,
                                                  const std::string& path, bool is_folder);

// "PATH: cannot WHAT: cause".
[[nodiscard]] Failure cannot_write(const std::string& path, const char* what, int cause);

}  // namespace ptkit::base
