#include "base/win32/file_handle.h"

#include <random>
#include <system_error>
#include <utility>

namespace ptkit::base {
namespace {

// Empty if the path is not UTF-8 or too long.
[[nodiscard]] std::wstring to_utf16(const std::string& path) {
  const int bytes = path.size() > MAXSHORT ? 0 : static_cast<int>(path.size());
  const int units = ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), bytes, nullptr, 0);
  std::wstring wide(static_cast<std::size_t>(units), L'\0');
  ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), bytes, wide.data(), units);
  return wide;
}

[[nodiscard]] Failure no_regular_file(const std::string& path, const char* kind) {
  return {Status::IO_ERROR, 0,
          path + ": is " + kind + ", not a regular file; give a file with a copy of the bytes"};
}

}  // namespace

std::wstring random_file_name() {
  constexpr std::wstring_view kDigits = L"0123456789abcdef";
  std::random_device random;
  std::wstring name = L".ptkit-";
  for (int i = 0; i < 16; ++i) name += kDigits[random() % kDigits.size()];
  return name;
}

Failure last_failure(const std::string& path, const char* what) {
  const std::error_code error(static_cast<int>(::GetLastError()), std::system_category());
  return {Status::IO_ERROR, 0, path + ": cannot " + what + ": " + error.message()};
}

Result<FileHandle> FileHandle::open(const std::string& path) {
  const std::wstring wide = to_utf16(path);
  if (wide.empty()) return Failure{Status::IO_ERROR, 0, path + ": cannot open: this is no path in UTF-8"};
  const DWORD attributes = ::GetFileAttributesW(wide.c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return last_failure(path, "open");
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) return no_regular_file(path, "a folder");
  constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  FileHandle file(::CreateFileW(wide.c_str(), GENERIC_READ, kShared, nullptr, OPEN_EXISTING,
                                FILE_ATTRIBUTE_NORMAL, nullptr));
  if (file.get() == INVALID_HANDLE_VALUE) return last_failure(path, "open");
  if (::GetFileType(file.get()) != FILE_TYPE_DISK) return no_regular_file(path, "a device");
  return file;
}

FileHandle::FileHandle(FileHandle&& other) noexcept
    : handle_(std::exchange(other.handle_, INVALID_HANDLE_VALUE)) {}

FileHandle::~FileHandle() {
  if (handle_ != INVALID_HANDLE_VALUE) ::CloseHandle(handle_);
}

}  // namespace ptkit::base
