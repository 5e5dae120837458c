// Classes of letters in mangled names, in any locale. Internal to src/code/symbol/names.
#pragma once

namespace ptkit::code::symbol {

[[nodiscard]] constexpr bool is_decimal(char letter) noexcept { return letter >= '0' && letter <= '9'; }
[[nodiscard]] constexpr bool is_lower(char letter) noexcept { return letter >= 'a' && letter <= 'z'; }
[[nodiscard]] constexpr bool is_upper(char letter) noexcept { return letter >= 'A' && letter <= 'Z'; }

}  // namespace ptkit::code::symbol
