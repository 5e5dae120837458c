#include "base/system/new_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_path.h"
#include "base/win32/file_handle.h"

namespace ptkit::base {

namespace {

namespace fs = std::filesystem;

constexpr int kFolderTries = 16;  // attempts if random names exist already

}  // namespace

NewFolder::NewFolder(std::string path, std::string written)
    : path_(std::move(path)), written_(std::move(written)) {}

NewFolder::NewFolder(NewFolder&& other) noexcept
    : path_(std::move(other.path_)), written_(std::exchange(other.written_, {})) {}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!written_.empty()) fs::remove_all(to_path(written_), ignored);
}

Result<NewFolder> NewFolder::create(const std::string& path) {
  constexpr DWORD kOther = FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DEVICE;
  const fs::path whole = to_path(path);
  const DWORD earlier = ::GetFileAttributesW(whole.c_str());
  if (earlier != INVALID_FILE_ATTRIBUTES && (earlier & kOther) != 0) {
    return Failure{Status::IO_ERROR, 0,
                   path + ": is neither a file nor a folder, and is not replaced; give another name"};
  }
  for (int i = 0; i < kFolderTries; ++i) {
    const fs::path written = whole.parent_path() / random_file_name();
    if (::CreateDirectoryW(written.c_str(), nullptr) != 0) return NewFolder(path, to_bytes(written));
    if (::GetLastError() != ERROR_ALREADY_EXISTS) break;
  }
  return last_failure(path, "create");
}

std::optional<Failure> create_subfolder(const std::string& path) {
  const bool made = ::CreateDirectoryW(to_path(path).c_str(), nullptr) != 0;
  if (made || ::GetLastError() == ERROR_ALREADY_EXISTS) return std::nullopt;
  return last_failure(path, "create");
}

// Rights of other users come from the folder's access control list.
std::optional<Failure> NewFolder::rename(const std::optional<Owner>& /*owner*/) {
  const fs::path whole = to_path(path_);
  fs::path old;
  if (::GetFileAttributesW(whole.c_str()) != INVALID_FILE_ATTRIBUTES) {
    old = whole.parent_path() / random_file_name();
    if (::MoveFileExW(whole.c_str(), old.c_str(), 0) == 0) return last_failure(path_, "replace");
  }
  if (::MoveFileExW(to_path(written_).c_str(), whole.c_str(), 0) == 0) {
    const Failure failure = last_failure(path_, "create");
    if (!old.empty()) ::MoveFileExW(old.c_str(), whole.c_str(), 0);
    return failure;
  }
  written_.clear();
  std::error_code ignored;
  if (!old.empty()) fs::remove_all(old, ignored);
  return std::nullopt;
}

}  // namespace ptkit::base
