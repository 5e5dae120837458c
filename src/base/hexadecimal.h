// Hexadecimal numbers in messages and kernel interfaces.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace ptkit::base {

// "0x" and lower-case digits without leading zeros.
[[nodiscard]] inline std::string hexadecimal(std::uint64_t value) {
  std::array<char, 18> text{'0', 'x'};
  const auto end = std::to_chars(text.data() + 2, text.data() + text.size(), value, 16).ptr;
  return {text.data(), end};
}

}  // namespace ptkit::base
