#include "code/symbol/names/punycode.h"

#include <cstdint>
#include <vector>

namespace ptkit::code::symbol {
namespace {

constexpr std::uint32_t kBase = 36;
constexpr std::uint32_t kLeast = 1;
constexpr std::uint32_t kMost = 26;
constexpr std::uint32_t kSkew = 38;
constexpr std::uint32_t kDamp = 700;
constexpr std::uint32_t kLastLetter = 0x10'FFFF;

std::optional<std::uint32_t> digit_of(char letter) noexcept {
  if (letter >= 'a' && letter <= 'z') return static_cast<std::uint32_t>(letter - 'a');
  if (letter >= '0' && letter <= '9') return static_cast<std::uint32_t>(letter - '0') + 26;
  return std::nullopt;
}

std::uint32_t adapted(std::uint32_t delta, std::uint32_t letters, bool is_first) noexcept {
  delta /= is_first ? kDamp : 2;
  delta += delta / letters;
  std::uint32_t bias = 0;
  for (; delta > (kBase - kLeast) * kMost / 2; bias += kBase) delta /= kBase - kLeast;
  return bias + (kBase - kLeast + 1) * delta / (delta + kSkew);
}

void append_utf8(std::string& text, std::uint32_t letter) {
  const auto part = [&](unsigned shift) { return static_cast<char>(0x80U | (letter >> shift & 0x3FU)); };
  if (letter < 0x80) {
    text += static_cast<char>(letter);
  } else if (letter < 0x800) {
    text += static_cast<char>(0xC0U | letter >> 6U);
    text += part(0);
  } else if (letter < 0x1'0000) {
    text += static_cast<char>(0xE0U | letter >> 12U);
    (text += part(6)) += part(0);
  } else {
    text += static_cast<char>(0xF0U | letter >> 18U);
    ((text += part(12)) += part(6)) += part(0);
  }
}

}  // namespace

std::optional<std::string> decode_punycode(std::string_view encoded) {
  const std::size_t delimiter = encoded.rfind('_');
  std::vector<std::uint32_t> letters;
  if (delimiter != std::string_view::npos)
    letters.assign(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(delimiter));
  std::size_t at = delimiter == std::string_view::npos ? 0 : delimiter + 1;
  std::uint32_t letter = 0x80;
  std::uint32_t place = 0;
  std::uint32_t bias = 72;
  while (at < encoded.size()) {
    const std::uint32_t before = place;
    std::uint64_t weight = 1;
    for (std::uint32_t k = kBase;; k += kBase) {
      const auto digit = at < encoded.size() ? digit_of(encoded[at++]) : std::nullopt;
      if (!digit || place + *digit * weight > kLastLetter * (letters.size() + 1)) return std::nullopt;
      place += static_cast<std::uint32_t>(*digit * weight);
      const std::uint32_t threshold = k <= bias ? kLeast : k >= bias + kMost ? kMost : k - bias;
      if (*digit < threshold) break;
      weight *= kBase - threshold;
    }
    const auto count = static_cast<std::uint32_t>(letters.size() + 1);
    bias = adapted(place - before, count, before == 0);
    letter += place / count;
    place %= count;
    if (letter > kLastLetter || (letter >= 0xD800 && letter < 0xE000)) return std::nullopt;
    letters.insert(letters.begin() + place, letter);
    ++place;
  }
  std::string text;
  for (const std::uint32_t one : letters) append_utf8(text, one);
  return text;
}

}  // namespace ptkit::code::symbol
