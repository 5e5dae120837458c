// Names, and the encodings that have them.
#include "code/symbol/names/itanium_size.h"

#include "code/symbol/names/itanium_reader.h"

namespace ptkit::code::symbol::itanium {

std::optional<std::uint64_t> SizeReader::read() {
  if (!take("_Z")) return std::nullopt;
  Size size = encoding();
  if (peek() == '.') {  // of a clone: ".constprop.0"
    size.characters += (name_.size() - at_) * kWord;
    at_ = name_.size();
  }
  size = checked(size);
  return failed_ || at_ != name_.size() ? std::nullopt : std::optional(size.characters);
}

std::uint64_t SizeReader::number() noexcept {
  std::uint64_t value = 0;
  take("n");
  if (!is_decimal(peek())) failed_ = true;
  for (; is_decimal(peek()); ++at_)
    value = std::min<std::uint64_t>(value * 10 + static_cast<std::uint64_t>(peek() - '0'), kMostItaniumText);
  return value;
}

void SizeReader::compact_number() noexcept {
  if (peek() != '_') number();
  need("_");
}

Size SizeReader::encoding() {
  const Level level(*this);
  if (failed_) return {};
  const Size outer = std::exchange(argument_, {});
  Size size = peek() == 'T' || (peek() == 'G' && peek(1) != '\0') ? special_name() : function();
  size = checked(size);
  argument_ = outer;
  return size;
}

// Parameters in the types, and in encodings within the name, stand for arguments of the name; those in the
// arguments themselves for arguments of the encoding outside.
Size SizeReader::function() {
  const Size own = name();
  const Size argument = argument_;
  Size size = own;
  if (peek() != '\0' && peek() != 'E' && peek() != '.') {
    take("J");
    size += function_types();
  }
  if (argument.characters == 0) return size;
  return size.resolved(argument) + Size{0, own.parameters};
}

Size SizeReader::special_name() {
  const Size words{kSentence, 0};
  if (take("GV") || take("TH") || take("TW")) return words + name();
  if (take("GR")) {
    const Size size = words + name();
    if (peek() != '\0') sequence_number();
    return size;
  }
  if (take("GA") || take("GTt") || take("GTn")) return words + encoding();
  if (take("TA")) return words + template_argument();
  if (take("TC")) {
    const Size derived = type();
    number();
    need("_");
    return words + derived + type();
  }
  if (take("Tc")) {
    call_offset(peek());
    call_offset(peek());
    return words + encoding();
  }
  if (peek() == 'T' && (peek(1) == 'h' || peek(1) == 'v')) {
    ++at_;
    call_offset(peek());
    return words + encoding();
  }
  if (peek() == 'T' && std::string_view("VTISFJ").find(peek(1)) != std::string_view::npos) {
    at_ += 2;
    return words + type();
  }
  return fail();
}

void SizeReader::call_offset(char kind) noexcept {
  if (!take_any("hv")) failed_ = true;
  number();
  need("_");
  if (kind != 'v') return;
  number();
  need("_");
}

Size SizeReader::name() {
  const Level level(*this);
  if (failed_) return {};
  if (take("N")) return nested_name();
  if (take("Z")) return local_name();
  const bool is_std = take("St");
  if (!is_std && peek() == 'S') {
    const Size size = substitution();
    return peek() == 'I' ? size + template_arguments() : size;
  }
  Size size = unqualified_name() + Size{kMark, 0};
  if (peek() != 'I') return size;
  candidate(size);
  return size + template_arguments();
}

Size SizeReader::nested_name() {
  take("H");
  Size size = qualifiers();
  if (take("R") || take("O")) size.characters += kMark;
  for (bool is_first = true; !failed_ && !take("E"); is_first = false) {
    if (take("M")) continue;  // a member's initialiser
    const bool is_substitution = peek() == 'S';
    if (is_substitution && !is_first) return fail();
    if (is_substitution) {
      size += substitution();
    } else if (peek() == 'D' && (peek(1) == 't' || peek(1) == 'T')) {
      size += type();
    } else if (peek() == 'I' || peek() == 'J') {
      if (is_first) return fail();
      size += template_arguments();
    } else if (peek() == 'T') {
      size += template_parameter();
    } else {
      size += unqualified_name();
    }
    size.characters += kMark;
    if (!is_substitution && peek() != 'E') candidate(size);
  }
  return size;
}

Size SizeReader::local_name() {
  Size size = encoding() + Size{kMark, 0};
  need("E");
  if (take("s")) {
    size.characters += kWord;
    discriminator();
    return size;
  }
  if (take("d")) {
    size.characters += kWord;
    compact_number();
    return size + name();
  }
  size += name();
  discriminator();
  return size;
}

void SizeReader::discriminator() noexcept {
  if (!take("_")) return;
  const bool is_long = take("_");
  if (is_decimal(peek())) number();
  if (is_long) take("_");
}

Size SizeReader::unqualified_name() {
  Size size;
  if (take("DC")) {
    while (!failed_ && !take("E")) size += source_name();
  } else if (peek() == 'C' || peek() == 'D') {
    const bool is_constructor = take("C");
    if (!is_constructor) ++at_;
    const bool inherits = is_constructor && take("I");
    if (!is_decimal(peek())) return fail();
    ++at_;
    size = {longest_name_ + kMark, 0};
    if (inherits) type();
  } else if (take("Ul")) {
    size = function_types() + Size{kWord, 0};
    need("E");
    compact_number();
    ++lambdas_;
  } else if (take("Ut")) {
    size = {kWord, 0};
    compact_number();
    candidate(size);
  } else if (is_lower(peek())) {
    take("on");
    size = operator_name();
  } else {
    const bool is_local = take("L");
    size = source_name();
    if (is_local) discriminator();
  }
  while (take("B")) size += source_name() + Size{kMark, 0};
  return size;
}

Size SizeReader::source_name() noexcept {
  const std::uint64_t size = number();
  if (failed_ || size == 0 || size > name_.size() - at_) return fail();
  at_ += size;
  const std::uint64_t characters = std::max<std::uint64_t>(size, kWord);  // "(anonymous namespace)"
  longest_name_ = std::max(longest_name_, characters);
  return {characters, 0};
}

Size SizeReader::operator_name() {
  if (take("cv")) return Size{kWord, 0} + conversion();
  if (peek() == 'v' && is_decimal(peek(1))) {
    at_ += 2;
    return Size{kWord, 0} + source_name();
  }
  if (take("li")) return Size{kWord, 0} + source_name();
  if (!is_lower(peek()) || (!is_lower(peek(1)) && !is_upper(peek(1)))) return fail();
  at_ += 2;
  return {kWord, 0};
}

Size SizeReader::conversion() {
  const bool outer = std::exchange(is_conversion_, true);
  const Size size = type();
  is_conversion_ = outer;
  return size;
}

}  // namespace ptkit::code::symbol::itanium

namespace ptkit::code::symbol {

std::optional<std::uint64_t> itanium_size(std::string_view raw_name) noexcept {
  if (raw_name.size() > kLongestItaniumName) return std::nullopt;
  itanium::SizeReader first(raw_name);
  const auto size = first.read();
  return size && first.longest_pack() > 1 ? itanium::SizeReader(raw_name, first.longest_pack()).read() : size;
}

}  // namespace ptkit::code::symbol
