// Case of ASCII letters, in each locale alike: std::tolower() knows no lower case of "I" in Turkish ones.
#pragma once

#include <string>
#include <string_view>

namespace ptkit::base {

[[nodiscard]] constexpr char ascii_lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

[[nodiscard]] constexpr char ascii_upper(char letter) noexcept {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

[[nodiscard]] inline std::string ascii_lower(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = ascii_lower(letter);
  return lower;
}

[[nodiscard]] inline std::string ascii_upper(std::string_view text) {
  std::string upper(text);
  for (char& letter : upper) letter = ascii_upper(letter);
  return upper;
}

}  // namespace ptkit::base
