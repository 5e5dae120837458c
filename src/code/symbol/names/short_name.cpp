#include "code/symbol/names/short_name.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "code/symbol/names/letters.h"

namespace ptkit::code::symbol {
namespace {

constexpr std::string_view kOperator = "operator";
constexpr std::string_view kAnonymous = "(anonymous namespace)";

// Words in front of the name of what a compiler makes for a function or class.
constexpr std::array<std::string_view, 10> kOf = {"virtual thunk to ",
                                                  "non-virtual thunk to ",
                                                  "covariant return thunk to ",
                                                  "guard variable for ",
                                                  "vtable for ",
                                                  "VTT for ",
                                                  "typeinfo for ",
                                                  "typeinfo name for ",
                                                  "TLS init function for ",
                                                  "TLS wrapper function for "};

// Operators with brackets in their names or behind them; of those that begin alike, the longer one first.
constexpr std::array<std::string_view, 12> kOperators = {"<=>", "<<=", ">>=", "->*", "<<", ">>",
                                                         "<=",  ">=",  "->",  "()",  "<",  ">"};

bool is_letter(char letter) noexcept {
  const char lower = base::ascii_lower(letter);
  return is_lower(lower) || is_decimal(letter) || letter == '_' || letter == '$';
}

// The end of what an opening bracket begins, behind the closing one; 0: nothing closes it.
std::size_t end_of_brackets(std::string_view text, std::size_t begin) noexcept {
  std::string closing;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '(' || letter == '{' || letter == '[') {
      closing += letter == '(' ? ')' : letter == '{' ? '}' : ']';
    } else if (letter == '<' && (closing.empty() || closing.back() == '>')) {
      closing += '>';  // in parentheses, it is an operator
    } else if (letter == '>' && at > 0 && text[at - 1] == '-') {
      continue;  // the arrow of a return type
    } else if (!closing.empty() && letter == closing.back()) {
      closing.pop_back();
      if (closing.empty()) return at + 1;
    }
  }
  return 0;
}

class Shortener {
 public:
  explicit Shortener(std::string_view name, int depth = 0) noexcept : name_(name), depth_(depth) {}

  // nullopt: the name has another form.
  std::optional<std::string> run() {
    for (const std::string_view words : kOf) {
      if (!name_.starts_with(words)) continue;
      fixed_ = words.size();
      out_ = words;
      at_ = words.size();
      break;
    }
    while (at_ < name_.size() && !ended_) {
      if (!step()) return std::nullopt;
    }
    return out_.size() > fixed_ ? std::optional(std::move(out_)) : std::nullopt;
  }

 private:
  [[nodiscard]] std::string_view rest() const noexcept { return name_.substr(at_); }
  [[nodiscard]] bool begins_part() const noexcept {
    return out_.size() == fixed_ || out_.ends_with(kScope) || out_.ends_with(' ') || out_.ends_with('&');
  }

  void copy(std::size_t letters) {
    out_ += name_.substr(at_, letters);
    at_ += letters;
  }

  bool step() {
    const char letter = name_[at_];
    if (rest().starts_with(kAnonymous)) {
      copy(kAnonymous.size());
      return true;
    }
    if (is_operator()) {
      copy_operator();
      return true;
    }
    switch (letter) {
      case '<':
        return angle();
      case '(':
        return parenthesis();
      case '{':
        return brace();
      case '[':
        return square();
      case ' ':
        return space();
      case '@':  // a stub
        copy(rest().size());
        return true;
      default:
        copy(1);
        return true;
    }
  }

  [[nodiscard]] bool is_operator() const noexcept {
    if (!rest().starts_with(kOperator) || (at_ > 0 && is_letter(name_[at_ - 1]))) return false;
    const std::size_t next = at_ + kOperator.size();
    return next < name_.size() && !is_letter(name_[next]);
  }

  void copy_operator() {
    copy(kOperator.size());
    for (const std::string_view symbol : kOperators) {
      if (!rest().starts_with(symbol)) continue;
      copy(symbol.size());
      if (rest().starts_with(" <")) ++at_;  // arguments of a template
      return;
    }
    // A conversion to a type, "new", "delete": up to the parameters.
    is_in_operator_ = true;
  }

  // Arguments of templates and generics, or a part of a path: "<Vec<T> as Clone>", "<impl Clone for T>".
  bool angle() {
    const std::size_t end = end_of_brackets(name_, at_);
    if (end == 0) return false;
    const std::string_view inside = name_.substr(at_ + 1, end - at_ - 2);
    const bool begins = begins_part() && !is_in_operator_;
    const bool is_path = inside.starts_with("impl ") || has_as(inside) || out_.size() == fixed_;
    if (begins && is_path) {
      out_ += '<';
      out_ += inner(inside);
      out_ += '>';
    } else if (begins && out_.ends_with(kScope)) {
      out_.resize(out_.size() - kScope.size());
    }
    at_ = end;
    return true;
  }

  [[nodiscard]] static bool has_as(std::string_view inside) noexcept {
    int depth = 0;
    for (std::size_t at = 0; at < inside.size(); ++at) {
      if (inside[at] == '<') ++depth;
      if (inside[at] == '>' && (at == 0 || inside[at - 1] != '-')) --depth;
      if (depth == 0 && inside.substr(at).starts_with(" as ")) return true;
    }
    return false;
  }

  // Types within a part of a path, each without its arguments.
  [[nodiscard]] std::string inner(std::string_view inside) const {
    constexpr int kMostNested = 8;
    std::string text;
    for (std::size_t at = 0; at < inside.size();) {
      if (inside[at] != '<') {
        text += inside[at++];
        continue;
      }
      const std::size_t end = end_of_brackets(inside, at);
      if (end == 0) return std::string(inside);
      const bool begins = text.empty() || !is_letter(text.back());
      const std::string_view of = inside.substr(at + 1, end - at - 2);
      if (begins && has_as(of) && depth_ < kMostNested) {
        text += '<';
        text += Shortener(name_, depth_ + 1).inner(of);
        text += '>';
      } else if (text.ends_with(kScope)) {
        text.resize(text.size() - kScope.size());
      }
      at = end;
    }
    return text;
  }

  // Parameters end the name, but for local functions and lambdas.
  bool parenthesis() {
    const std::size_t end = end_of_brackets(name_, at_);
    if (end == 0 || out_.size() == fixed_) return false;
    const bool is_variant = out_.ends_with(' ');
    if (is_variant && end == name_.size()) {
      copy(rest().size());
      return true;
    }
    if (is_variant) return false;  // a function that returns a pointer to a function
    is_in_operator_ = false;
    const bool is_type = out_.ends_with("decltype");
    at_ = end;
    if (is_type || rest().starts_with(kScope)) return true;
    tail();
    return true;
  }

  // Behind the parameters: qualifiers, and what is known of a clone or variant.
  void tail() {
    ended_ = true;
    // A qualifier in front of a local function: "f() const::{lambda()#1}".
    if (const std::size_t scope = rest().find(kScope); scope != std::string_view::npos) {
      const std::string_view qualifiers = rest().substr(0, scope);
      const bool are_qualifiers = std::ranges::all_of(
          qualifiers, [](char letter) { return letter == ' ' || letter == '&' || is_lower(letter); });
      if (are_qualifiers) {
        at_ += scope;
        ended_ = false;
        return;
      }
    }
    const std::size_t known = std::min(rest().find(" ["), rest().find(" ("));
    const std::size_t stub = std::min(known, rest().find('@'));
    if (stub != std::string_view::npos) out_ += rest().substr(stub);
  }

  bool brace() {
    const std::size_t end = end_of_brackets(name_, at_);
    if (end == 0) return false;
    for (; at_ < end;) {
      const std::size_t after = name_[at_] == '(' ? end_of_brackets(name_, at_) : 0;
      if (after != 0 && after <= end) {
        at_ = after;
      } else {
        copy(1);
      }
    }
    return true;
  }

  bool square() {
    const std::size_t end = end_of_brackets(name_, at_);
    if (end == 0) return false;
    if (rest().starts_with("[abi:")) {
      at_ = end;
    } else {
      copy(end - at_);
    }
    return true;
  }

  // Text in front of a space is a return type.
  bool space() {
    if (rest().starts_with(" [clone") || rest().starts_with(" [resolver]")) {
      copy(rest().size());
    } else if (is_in_operator_ || rest().starts_with(" (")) {
      copy(1);
    } else {
      out_.resize(fixed_);
      ++at_;
    }
    return true;
  }

  std::string_view name_;
  int depth_;
  std::size_t at_ = 0;
  std::size_t fixed_ = 0;  // length of the words in front
  bool is_in_operator_ = false;
  bool ended_ = false;
  std::string out_;
};

// Only names of C++ and Rust have scopes, or arguments behind the function's name.
bool can_be_short(std::string_view name) noexcept {
  if (name.find(kScope) != std::string_view::npos) return true;
  const std::size_t at = name.find_first_of("(<");
  return at != std::string_view::npos && at > 0 && name[at - 1] != ' ' && name[at - 1] != '.';
}

}  // namespace

std::string short_name(std::string_view name) {
  if (!can_be_short(name)) return std::string(name);
  return Shortener(name).run().value_or(std::string(name));
}

std::string_view without_variant(std::string_view name) noexcept {
  const std::size_t at = name.ends_with(')') ? name.rfind(" (") : std::string_view::npos;
  return at == std::string_view::npos ? name : name.substr(0, at);
}

bool ends_with_part(std::string_view short_name, std::string_view part) noexcept {
  if (part.empty() || !short_name.ends_with(part)) return false;
  const std::string_view before = short_name.substr(0, short_name.size() - part.size());
  return before.empty() || before.ends_with(kScope);
}

}  // namespace ptkit::code::symbol
