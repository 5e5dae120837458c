// A folder that is filled under a random name and renamed when it is complete. Other users can neither read
// it nor redirect the writes to another folder.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/system/owner.h"

namespace ptkit::base {

class NewFolder {
 public:
  // Creates the folder beside `path`, on POSIX with mode 0700. Fails if `path` exists and is neither a
  // regular file nor a folder.
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
  std::string written_;  // empty after rename()
};

// Creates a folder inside a NewFolder, on POSIX with mode 0700. It may exist already.
[[nodiscard]] std::optional<Failure> create_subfolder(const std::string& path);

}  // namespace ptkit::base
