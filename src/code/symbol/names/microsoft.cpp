#include "code/symbol/names/microsoft.h"

#include "code/symbol/names/microsoft_size.h"

namespace ptkit::code::symbol {

std::optional<std::string> demangle_microsoft(std::string_view raw_name) {
  if (!is_microsoft_name(raw_name) || !has_microsoft_demangler() || !microsoft_size(raw_name))
    return std::nullopt;
  std::optional<std::string> name = undecorate(std::string(raw_name));
  return name && name->size() <= kMostMicrosoftText ? name : std::nullopt;
}

}  // namespace ptkit::code::symbol
