// Owns a HANDLE of a file that is open for reading; names of new files, and failures of the system.
#pragma once

#include <windows.h>

#include <string>

#include "base/status.h"

namespace ptkit::base {

class FileHandle {
 public:
  // Other programs may read, replace and remove the file meanwhile. IO_ERROR with the path, and the kind if
  // the file is not regular.
  [[nodiscard]] static Result<FileHandle> open(const std::string& path);
  FileHandle(FileHandle&& other) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  FileHandle& operator=(FileHandle&&) = delete;
  ~FileHandle();

  [[nodiscard]] HANDLE get() const noexcept { return handle_; }

 private:
  explicit FileHandle(HANDLE handle) noexcept : handle_(handle) {}
  HANDLE handle_;
};

// An unpredictable name.
[[nodiscard]] std::wstring random_file_name();

// "PATH: cannot WHAT: " and the system's sentence for the last error of this thread.
[[nodiscard]] Failure last_failure(const std::string& path, const char* what);

}  // namespace ptkit::base
