// Lines, words and numbers of text files that tools print. Internal to src/formats/symbols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ptkit::formats::symbols {

inline constexpr std::string_view kBlanks = " \t\r";

[[nodiscard]] inline std::string_view trim(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Removes and returns the first line, without its end.
[[nodiscard]] inline std::string_view take_line(std::string_view& text) noexcept {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Removes and returns the first word, and the blanks around it.
[[nodiscard]] inline std::string_view take_word(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  return word;
}

// A number of up to 64 bits in hexadecimal digits alone, which may have 0x before them, and WinDbg's backtick
// between them.
[[nodiscard]] inline std::optional<std::uint64_t> hex_number(std::string_view word) noexcept {
  constexpr std::size_t kMostHexDigits = 16;
  if (word.starts_with("0x") || word.starts_with("0X")) word.remove_prefix(2);
  std::uint64_t number = 0;
  std::size_t digits = 0;
  for (const char letter : word) {
    if (letter == '`' && digits != 0) continue;
    unsigned digit = 0;
    if (letter >= '0' && letter <= '9') {
      digit = static_cast<unsigned>(letter - '0');
    } else if (letter >= 'a' && letter <= 'f') {
      digit = static_cast<unsigned>(letter - 'a') + 10;
    } else if (letter >= 'A' && letter <= 'F') {
      digit = static_cast<unsigned>(letter - 'A') + 10;
    } else {
      return std::nullopt;
    }
    if (++digits > kMostHexDigits) return std::nullopt;
    number = number << 4U | digit;
  }
  if (digits == 0) return std::nullopt;
  return number;
}

}  // namespace ptkit::formats::symbols
