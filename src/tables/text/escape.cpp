#include "tables/text/escape.h"

#include <array>
#include <cstdint>

#include "base/digits.h"

namespace ptkit::tables::text {
namespace {

struct Character {
  std::uint32_t code = 0;  // a byte that is no UTF-8: 0xdc00 + byte, as Python's "surrogateescape" has it
  std::size_t size = 1;    // bytes
};

constexpr std::uint32_t kNoText = 0xdc00;

// The character at the begin of a text that is not empty.
Character first_of(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(text[at]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  const Character none{kNoText + lead, 1};
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return none;
  std::uint32_t code = lead & (0xffU >> (size + 1));
  for (std::size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xc0U) != 0x80U) return none;
    code = code << 6U | (byte(at) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> kFirst = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kFirst[size] || code > 0x10ffff || surrogate ? none : Character{code, size};
}

void add_hex(std::string& text, std::string_view before, std::uint32_t code, unsigned digits) {
  std::array<char, base::kMostDigits> number;
  text += before;
  text.append(number.data(), base::put_hex(number.data(), code, digits));
}

bool is_control(std::uint32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
}

void add_json(std::string& text, std::uint32_t code) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
  constexpr std::string_view kLetters = "\"\\nrtfb";
  const std::size_t found = code < 0x80 ? kEscaped.find(static_cast<char>(code)) : std::string_view::npos;
  if (found != std::string_view::npos) {
    text += '\\';
    text += kLetters[found];
  } else if (code >= 0x20 && code < 0x7f) {
    text += static_cast<char>(code);
  } else if (code < 0x10000) {
    add_hex(text, "\\u", code, 4);
  } else {
    add_hex(text, "\\u", 0xd800 + ((code - 0x10000) >> 10U), 4);
    add_hex(text, "\\u", 0xdc00 + ((code - 0x10000) & 0x3ffU), 4);
  }
}

}  // namespace

std::string for_terminal(std::string_view utf8) {
  std::string text;
  while (!utf8.empty()) {
    const Character one = first_of(utf8);
    if ((one.code & ~0xffU) == kNoText) {
      add_hex(text, "\\x", one.code & 0xffU, 2);
    } else if (is_control(one.code)) {
      add_hex(text, one.code < 0x100 ? "\\x" : "\\u", one.code, one.code < 0x100 ? 2 : 4);
    } else {
      text += utf8.substr(0, one.size);
    }
    utf8.remove_prefix(one.size);
  }
  return text;
}

std::string for_json(std::string_view utf8) {
  std::string text = "\"";
  while (!utf8.empty()) {
    const Character one = first_of(utf8);
    add_json(text, one.code);
    utf8.remove_prefix(one.size);
  }
  return text + '"';
}

}  // namespace ptkit::tables::text
