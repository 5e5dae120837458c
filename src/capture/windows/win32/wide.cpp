#include "capture/windows/win32/wide.h"

#include <windows.h>

#include <system_error>

namespace ptkit::capture::win32 {

std::wstring wide(std::string_view utf8) {
  const int size = static_cast<int>(utf8.size());
  std::wstring out(utf8.size(), L'\0');
  const int length = ::MultiByteToWideChar(CP_UTF8, 0, utf8.data(), size, out.data(), size);
  out.resize(static_cast<std::size_t>(length > 0 ? length : 0));
  return out;
}

std::string narrow(std::wstring_view utf16) {
  const int size = static_cast<int>(utf16.size());
  std::string out(3 * utf16.size(), '\0');
  const int length = ::WideCharToMultiByte(CP_UTF8, 0, utf16.data(), size, out.data(),
                                           static_cast<int>(out.size()), nullptr, nullptr);
  out.resize(static_cast<std::size_t>(length > 0 ? length : 0));
  return out;
}

base::Failure last_failure(const std::string& what) {
  const int error = static_cast<int>(::GetLastError());
  return {base::Status::IO_ERROR, 0,
          "cannot " + what + ": " + std::system_category().message(error) + " (error " +
              std::to_string(error) + " of Windows)"};
}

}  // namespace ptkit::capture::win32
