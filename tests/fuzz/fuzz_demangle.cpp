// Demangling of hostile names: the text has a bound, and so has the time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "code/symbol/names/demangle.h"
#include "code/symbol/names/itanium_size.h"
#include "code/symbol/names/microsoft.h"
#include "code/symbol/names/microsoft_size.h"
#include "code/symbol/names/short_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit::code::symbol;
  constexpr std::clock_t kMostTime = CLOCKS_PER_SEC / 2;  // of this process, under sanitizers
  const std::string_view name(reinterpret_cast<const char*>(data), size);
  if (name.find('\0') != std::string_view::npos) return 0;  // no symbol has such a name
  const std::clock_t begin = std::clock();
  // The text of the library itself, before it is cut: what bounds it is the size that was computed.
  if (const auto bound = microsoft_size(name)) {
    const auto text = is_microsoft_name(name) ? undecorate(std::string(name)) : std::nullopt;
    if (text && text->size() > kFixedText * (*bound + size)) std::abort();
  }
  if (const auto text = demangle_microsoft(name); text && text->size() > kMostMicrosoftText) std::abort();
  // Demanglers of other schemes but these two have limits of their own; their names are fuzzed with short
  // forms.
  if (const auto bound = itanium_size(name)) {
    const std::string text = demangle(name);
    if (text.size() > *bound && text != name) std::abort();
    static_cast<void>(short_name(text));
  }
  if (is_microsoft_name(name)) static_cast<void>(short_name(demangle(name)));
  if (std::clock() - begin > kMostTime) std::abort();
  return 0;
}
