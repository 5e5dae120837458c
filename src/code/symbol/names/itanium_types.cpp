// Types, template arguments and substitutions.
#include "code/symbol/names/itanium_reader.h"

namespace ptkit::code::symbol::itanium {

Size SizeReader::template_parameter() {
  need("T");
  if (take("L")) compact_number();
  compact_number();
  return {kWord, 1};  // "auto:1" of a lambda
}

Size SizeReader::template_arguments(bool is_pack) {
  const Level level(*this);
  if (!take_any("IJ")) return fail();
  Size size{kMark, 0};
  std::uint64_t count = 0;
  while (!failed_ && !take("E")) {
    size = checked(size + template_argument(is_pack));
    ++count;
  }
  if (is_pack) longest_pack_ = std::max(longest_pack_, count);
  return size;
}

Size SizeReader::arguments_to_end() {
  Size size;
  while (!failed_ && !take("E")) size = checked(size + template_argument());
  return size;
}

// A parameter stands for an argument or for one element of a pack; such an element may be a pack, too.
Size SizeReader::template_argument(bool is_in_pack) {
  const Level level(*this);
  if (failed_) return {};
  Size size;
  if (peek() == 'I' || peek() == 'J') {
    size = template_arguments(true);
    if (is_in_pack) argument_ = argument_.max(size);
    return size;
  }
  if (take("X")) {
    size = expression();
    need("E");
  } else if (peek() == 'L') {
    size = literal();
  } else {
    size = type();
  }
  size.characters += kMark;
  argument_ = argument_.max(size);
  return size;
}

Size SizeReader::substitution() {
  need("S");
  if (peek() == '_' || is_decimal(peek()) || is_upper(peek())) {
    const std::uint64_t index = sequence_number();
    if (failed_ || index >= candidates_.size()) return fail();
    // Other versions of the C++ library count lambdas, too.
    Size size = candidates_[index];
    for (std::uint64_t i = 1; i <= std::min(lambdas_, index); ++i) size = size.max(candidates_[index - i]);
    return size;
  }
  if (!take_any("tabsiod")) return fail();
  Size size{kSentence, 0};
  if (peek() != 'B') return size;
  while (take("B")) size += source_name() + Size{kMark, 0};
  return candidate(size);
}

std::uint64_t SizeReader::sequence_number() noexcept {
  if (take("_")) return 0;
  constexpr std::uint64_t kBase = 36;
  std::uint64_t value = 0;
  for (; is_decimal(peek()) || is_upper(peek()); ++at_) {
    const char digit = peek();
    value = value * kBase + static_cast<std::uint64_t>(is_decimal(digit) ? digit - '0' : digit - 'A' + 10);
    if (value > kLongestItaniumName) failed_ = true;
  }
  need("_");
  return value + 1;
}

Size SizeReader::qualifiers() {
  Size size;
  while (!failed_) {
    if (take_any("rVK") || take("Dx") || take("Do")) {
      size.characters += kWord;
    } else if (take("DO")) {
      size += expression() + Size{kWord, 0};
      need("E");
    } else if (take("Dw")) {
      size += function_types() + Size{kWord, 0};
      need("E");
    } else {
      break;
    }
  }
  return size;
}

Size SizeReader::type() {
  const Level level(*this);
  if (failed_) return {};
  if (const Size own = qualifiers(); own.characters != 0)
    return candidate(own + (peek() == 'F' ? function_type() : type()));
  const Size mark{kMark, 0};
  const char kind = peek();
  if (kind == 'u') {
    ++at_;
    const Size size = source_name();
    return candidate(peek() == 'I' ? size + template_arguments() : size);
  }
  if (is_lower(kind)) {
    ++at_;
    return {kWord, 0};
  }
  if (is_decimal(kind) || kind == 'N' || kind == 'Z') return candidate(name());
  if (kind == 'F') return candidate(function_type());
  if (take_any("OPR")) return candidate(mark + type());
  if (take_any("CG")) return candidate(Size{kWord, 0} + type());
  if (take("A")) {
    Size size = mark;
    if (is_decimal(peek())) {
      size.characters += number() > 0 ? kWord : kMark;
    } else if (peek() != '_') {
      size += expression();
    }
    need("_");
    return candidate(size + type());
  }
  if (take("M")) {
    const Size owner = type();
    return candidate(mark + owner + type());
  }
  if (take("U")) {
    Size size = source_name() + mark;
    if (peek() == 'I') size += template_arguments();
    return candidate(size + type());
  }
  if (kind == 'T') return candidate(parameter_type());
  if (kind == 'S') return substituted_type();
  return kind == 'D' ? other_type() : fail();
}

Size SizeReader::parameter_type() {
  Size size = template_parameter();
  if (peek() != 'I') return size;
  if (!is_conversion_) {
    candidate(size);
    return size + template_arguments();
  }
  if (conversions_ == kMostConversions) return fail();
  ++conversions_;
  const std::size_t before = at_;
  const std::size_t count = candidates_.size();
  const Size arguments = template_arguments();
  --conversions_;
  if (peek() == 'I') return size + arguments;
  at_ = before;
  candidates_.resize(std::min(count, candidates_.size()));
  return size;
}

Size SizeReader::substituted_type() {
  const char next = peek(1);
  if (next == '_' || is_decimal(next) || is_upper(next)) {
    const Size size = substitution();
    return peek() == 'I' ? candidate(size + template_arguments()) : size;
  }
  const std::size_t before = at_;
  const Size size = name();
  const bool is_standard = at_ == before + 2;  // "Ss" alone
  return is_standard ? size : candidate(size);
}

Size SizeReader::other_type() {
  const Size word{kWord, 0};
  ++at_;
  if (take_any("acfdehuisn")) return word;
  if (take_any("tT")) {
    const Size size = expression() + word;
    need("E");
    return candidate(size);
  }
  if (take("p")) return candidate(expanded(type()) + Size{kMark, 0});
  if (take("F")) {
    number();
    if (!take_any("_bx")) failed_ = true;
    return word;
  }
  if (take_any("BU")) {
    Size size = word;
    if (is_decimal(peek())) {
      number();
    } else {
      size += expression();
    }
    need("_");
    return size;
  }
  if (take("v")) {
    Size size = word;
    if (is_decimal(peek())) {
      number();
    } else {
      need("_");
      size += expression();
    }
    need("_");
    return candidate(size + type());
  }
  return fail();
}

Size SizeReader::expanded(const Size& pattern) noexcept {
  return checked(pattern.parameters == 0 ? pattern : pattern.times(longest_pack_));
}

Size SizeReader::function_type() {
  need("F");
  take("Y");
  const Size size = function_types();
  need("E");
  return size;
}

Size SizeReader::function_types() {
  const Level level(*this);
  Size size{kMark, 0};
  while (peek() != '\0' && peek() != 'E' && peek() != '.') {
    if ((peek() == 'R' || peek() == 'O') && peek(1) == 'E') {
      ++at_;
      size.characters += kMark;
      break;
    }
    size = checked(size + type() + Size{2, 0});
  }
  return size;
}

}  // namespace ptkit::code::symbol::itanium
