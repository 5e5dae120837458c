// Texts of Windows: UTF-16 there, UTF-8 here.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace ptkit::capture::win32 {

[[nodiscard]] std::wstring wide(std::string_view utf8);
[[nodiscard]] std::string narrow(std::wstring_view utf16);

// "cannot WHAT: " and the system's sentence for the last error of this thread.
[[nodiscard]] base::Failure last_failure(const std::string& what);

}  // namespace ptkit::capture::win32
