// Names with letters beyond ASCII (RFC 3492, with "_" as delimiter). Internal to src/code/symbol.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ptkit::code::symbol {

// In UTF-8; nullopt: not valid.
[[nodiscard]] std::optional<std::string> decode_punycode(std::string_view encoded);

}  // namespace ptkit::code::symbol
