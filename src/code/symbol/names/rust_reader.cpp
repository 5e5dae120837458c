#include "code/symbol/names/rust_reader.h"

#include <charconv>
#include <limits>

#include "code/symbol/names/punycode.h"

namespace ptkit::code::symbol {
namespace {

bool is_digit(char letter) noexcept { return letter >= '0' && letter <= '9'; }

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
    if (is_digit(letter)) {
      digit = static_cast<unsigned>(letter - '0');
    } else if (is_lower(letter)) {
      digit = static_cast<unsigned>(letter - 'a') + 10;
    } else if (letter >= 'A' && letter <= 'Z') {
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
  if (failed_ || at_ >= mangled_.size() || !is_digit(mangled_[at_])) failed_ = true;
  const bool is_empty = eat('0');
  while (!failed_ && !is_empty && at_ < mangled_.size() && is_digit(mangled_[at_]) && size <= mangled_.size())
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
    if (!is_digit(digit) && (digit < 'a' || digit > 'f')) failed_ = true;
  }
  if (failed_) return {};
  const std::string_view digits = mangled_.substr(begin, at_ - 1 - begin);
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return digits;
}

}  // namespace ptkit::code::symbol
