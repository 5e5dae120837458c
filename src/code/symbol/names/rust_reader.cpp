#include "code/symbol/names/rust_reader.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
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
  if (is_lower(letter)) return static_cast<std::uint32_t>(letter - 'a');
  if (is_decimal(letter)) return static_cast<std::uint32_t>(letter - '0') + 26;
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

// In UTF-8; nullopt: not valid.
std::optional<std::string> decode_punycode(std::string_view encoded) {
  const std::size_t delimiter = encoded.rfind('_');
  std::vector<std::uint32_t> letters;
  if (delimiter != std::string_view::npos)
    letters.assign(encoded.begin(), encoded.begin() + static_cast<std::ptrdiff_t>(delimiter));
  std::size_t at = delimiter == std::string_view::npos ? 0 : delimiter + 1;
  std::uint32_t letter = 0x80;
  std::uint32_t position = 0;
  std::uint32_t bias = 72;
  while (at < encoded.size()) {
    const std::uint32_t before = position;
    std::uint64_t weight = 1;
    for (std::uint32_t k = kBase;; k += kBase) {
      const auto digit = at < encoded.size() ? digit_of(encoded[at++]) : std::nullopt;
      if (!digit || position + *digit * weight > kLastLetter * (letters.size() + 1)) return std::nullopt;
      position += static_cast<std::uint32_t>(*digit * weight);
      const std::uint32_t threshold = k <= bias ? kLeast : k >= bias + kMost ? kMost : k - bias;
      if (*digit < threshold) break;
      weight *= kBase - threshold;
    }
    const auto count = static_cast<std::uint32_t>(letters.size() + 1);
    bias = adapted(position - before, count, before == 0);
    letter += position / count;
    position %= count;
    if (letter > kLastLetter || (letter >= 0xD800 && letter < 0xE000)) return std::nullopt;
    letters.insert(letters.begin() + position, letter);
    ++position;
  }
  std::string text;
  for (const std::uint32_t one : letters) append_utf8(text, one);
  return text;
}

}  // namespace

char RustReader::next() {
  if (failed_ || at_ >= mangled_.size()) {
    failed_ = true;
    return '\0';
  }
  return mangled_[at_++];
}
bool RustReader::eat(char letter) {
  if (failed_ || at_ >= mangled_.size() || mangled_[at_] != letter) return false;
  ++at_;
  return true;
}

std::uint64_t RustReader::base_62() {
  if (eat('_')) return 0;
  std::uint64_t value = 0;
  while (!failed_ && !eat('_')) {
    const char letter = next();
    unsigned digit = 0;
    if (is_decimal(letter)) {
      digit = static_cast<unsigned>(letter - '0');
    } else if (is_lower(letter)) {
      digit = static_cast<unsigned>(letter - 'a') + 10;
    } else if (is_upper(letter)) {
      digit = static_cast<unsigned>(letter - 'A') + 36;
    } else {
      failed_ = true;
    }
    if (value > std::numeric_limits<std::uint64_t>::max() / 62 - 62) failed_ = true;
    value = value * 62 + digit;
  }
  return value + 1;
}
std::uint64_t RustReader::optional_base_62(char tag) { return eat(tag) ? base_62() + 1 : 0; }

RustIdentifier RustReader::identifier() {
  RustIdentifier found;
  found.disambiguator = optional_base_62('s');
  found.text = plain_identifier();
  return found;
}
std::string RustReader::plain_identifier() {
  const bool is_punycode = eat('u');
  std::size_t size = 0;
  if (failed_ || at_ >= mangled_.size() || !is_decimal(mangled_[at_])) failed_ = true;
  const bool is_empty = eat('0');
  while (!failed_ && !is_empty && at_ < mangled_.size() && is_decimal(mangled_[at_]) &&
         size <= mangled_.size())
    size = size * 10 + static_cast<std::size_t>(next() - '0');
  eat('_');
  if (failed_ || size > mangled_.size() - at_) {
    failed_ = true;
    return {};
  }
  const std::string_view raw = mangled_.substr(at_, size);
  at_ += size;
  if (!is_punycode) return std::string(raw);
  const auto decoded = decode_punycode(raw);
  if (!decoded) failed_ = true;
  return decoded.value_or("");
}

std::string_view RustReader::hexadecimal(std::uint64_t& value) {
  const std::size_t begin = at_;
  while (!failed_ && !eat('_')) {
    const char digit = next();
    if (!is_decimal(digit) && (digit < 'a' || digit > 'f')) failed_ = true;
  }
  if (failed_) return {};
  const std::string_view digits = mangled_.substr(begin, at_ - 1 - begin);
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return digits;
}

}  // namespace ptkit::code::symbol
