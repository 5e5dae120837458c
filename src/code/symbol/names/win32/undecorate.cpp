// Windows' own demangler, in dbghelp.dll.
// clang-format off
#include <windows.h>
#include <dbghelp.h>
// clang-format on

#include <mutex>
#include <utility>

#include "code/symbol/names/microsoft.h"
#include "code/symbol/names/microsoft_size.h"

namespace ptkit::code::symbol {

bool has_microsoft_demangler() noexcept { return true; }

std::optional<std::string> undecorate(const std::string& raw_name) {
  constexpr DWORD kFlags = UNDNAME_NO_ACCESS_SPECIFIERS | UNDNAME_NO_ALLOCATION_LANGUAGE |
                           UNDNAME_NO_FUNCTION_RETURNS | UNDNAME_NO_MEMBER_TYPE | UNDNAME_NO_MS_KEYWORDS |
                           UNDNAME_NO_THROW_SIGNATURES;
  static std::mutex mutex;  // dbghelp's functions are not thread-safe
  std::string text(kMostMicrosoftText + 1, '\0');
  const std::lock_guard lock(mutex);
  const DWORD size =
      UnDecorateSymbolName(raw_name.c_str(), text.data(), static_cast<DWORD>(text.size()), kFlags);
  text.resize(size);
  // Names that it does not know stay as they are.
  return size == 0 || text == raw_name ? std::nullopt : std::optional(std::move(text));
}

}  // namespace ptkit::code::symbol
