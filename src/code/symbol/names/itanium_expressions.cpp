// Expressions in template arguments, array bounds and decltype.
#include "code/symbol/names/itanium_reader.h"

namespace ptkit::code::symbol::itanium {

Size SizeReader::literal() {
  const Level level(*this);
  need("L");
  if (take("_Z") || take("Z")) {
    const Size size = encoding();
    need("E");
    return size;
  }
  Size size = type() + Size{kMark, 0};
  for (; peek() != 'E' && peek() != '\0'; ++at_) ++size.characters;
  need("E");
  return size;
}

Size SizeReader::expressions(std::string_view end) {
  Size size;
  while (!failed_ && !take(end)) size = checked(size + expression() + Size{2, 0});
  return size;
}

Size SizeReader::expression() {
  const Level level(*this);
  if (failed_) return {};
  const bool outer = std::exchange(is_conversion_, false);
  const Size size = checked(expression_in_level() + Size{kMark, 0});
  is_conversion_ = outer;
  return size;
}

Size SizeReader::expression_in_level() {
  const Size word{kWord, 0};
  if (peek() == 'L') return literal();
  if (peek() == 'T') return template_parameter();
  if (is_decimal(peek())) return with_arguments(unqualified_name());
  if (take("gs")) return expression();
  if (take("sr")) return unresolved_name();
  if (take("sp")) return expanded(expression());
  if (take("sZ")) return word + expression();
  if (take("sP")) return word + arguments_to_end();
  if (take("fp")) {
    if (take("T")) return word;
    qualifiers();
    compact_number();
    return word;
  }
  if (take("fL")) {
    if (is_decimal(peek())) {
      number();
      need("p");
      qualifiers();
      compact_number();
      return word;
    }
    return fold(2);
  }
  if (take("fR")) return fold(2);
  if (take("fl") || take("fr")) return fold(1);
  if (take("il")) return expressions("E");
  if (take("on")) return with_arguments(operator_name());
  if (take("cl") || take("cp")) {
    const Size called = expression();
    return called + expressions("E");
  }
  if (take("dt") || take("pt")) {
    const Size object = expression();
    if (take("gs") || peek() == 's') return object + expression();
    if (peek() == 'T' || peek() == 'L') return object + expression();
    return object + with_arguments(unqualified_name());
  }
  if (take("u")) {
    const Size size = source_name();
    return checked(size + arguments_to_end());
  }
  if (take("tr")) return word;
  return expression_with_type();
}

Size SizeReader::expression_with_type() {
  const Size word{kWord, 0};
  if (take("tl")) {
    const Size of = type();
    return of + expressions("E");
  }
  if (take("st") || take("at") || take("ti")) return word + type();
  if (take("sc") || take("dc") || take("cc") || take("rc")) {
    const Size to = type();
    return word + to + expression();
  }
  if (take("cv")) {
    const Size to = type();
    return to + (take("_") ? expressions("E") : expression());
  }
  if (take("nw") || take("na")) {
    Size size = word + expressions("_");
    size += type();
    if (take("E")) return size;
    if (take("pi")) return size + expressions("E");
    return size + expression();
  }
  return operation(word);
}

Size SizeReader::unresolved_name() {
  const bool is_nested = take("N");
  const bool has_type = !is_decimal(peek());
  Size size = has_type ? type() : Size{};
  if (has_type && !is_nested) return size + with_arguments(unqualified_name());
  while (is_decimal(peek())) {
    size = checked(size + unqualified_name() + Size{kMark, 0});
    if (is_nested) candidate(size);
    if (peek() != 'I') continue;
    size = checked(size + template_arguments());
    if (is_nested) candidate(size);
  }
  const bool ends_scope = peek() == 'E' && (is_nested || is_decimal(peek(1)));
  return ends_scope && take("E") ? size + with_arguments(unqualified_name()) : size;
}

Size SizeReader::fold(int operands) {
  Size size = operator_name();
  for (; operands > 0; --operands) size += expression();
  return expanded(size);
}

Size SizeReader::operation(const Size& word) {
  const std::string_view code = name_.substr(std::min(at_, name_.size()), 2);
  static constexpr std::string_view kUnary = "ad ps ng de co nt pp mm sz az te nx dl da tw aw ";
  static constexpr std::string_view kBinary =
      "pl mi ml dv rm an or eo aS pL mI mL dV rM aN oR eO ls rs lS rS eq ne lt gt le ge ss aa oo cm pm ix "
      "di dx ";
  const auto is_of = [&](std::string_view codes) {
    return code.size() == 2 && codes.find(code) != std::string_view::npos;
  };
  int operands = code == "qu" || code == "dX" ? 3 : is_of(kBinary) ? 2 : is_of(kUnary) ? 1 : 0;
  if (operands == 0) return fail();
  at_ += 2;
  if (code == "pp" || code == "mm") take("_");  // before its operand
  Size size = word;
  for (; operands > 0; --operands) size += expression();
  return size;
}

}  // namespace ptkit::code::symbol::itanium
