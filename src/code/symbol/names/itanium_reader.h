// Reads a name of the Itanium C++ ABI, and adds up the characters that it becomes. The grammar is that of
// libiberty's cp-demangle.c, which is the demangler of the C++ library. Internal to src/code/symbol/names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "code/symbol/names/itanium_size.h"
#include "code/symbol/names/letters.h"

namespace ptkit::code::symbol::itanium {

inline constexpr int kDeepestItaniumName = 200;
inline constexpr int kMostConversions = 6;  // nested: the C++ library reads the arguments of each one twice

// Characters of fixed texts.
inline constexpr std::uint64_t kWord = 24;  // "unsigned long long", " const volatile", "operator co_await"
inline constexpr std::uint64_t kSentence = 80;  // "construction vtable for ", "std::basic_string<char, ...>"
inline constexpr std::uint64_t kMark = 8;       // "<", ", ", " >", "::", "(...)"

// Of a part of a name.
struct Size {
  std::uint64_t characters = 0;
  std::uint64_t parameters = 0;  // template parameters, which become an argument each

  Size& operator+=(const Size& other) noexcept {
    characters += other.characters;
    parameters += other.parameters;
    return *this;
  }
  friend Size operator+(Size one, const Size& other) noexcept { return one += other; }
  [[nodiscard]] Size times(std::uint64_t count) const noexcept {
    return {characters * count, parameters * count};
  }
  // Each parameter is this argument.
  [[nodiscard]] Size resolved(const Size& argument) const noexcept {
    return Size{characters, 0} + argument.times(parameters);
  }
  [[nodiscard]] Size max(const Size& other) const noexcept {
    return {std::max(characters, other.characters), std::max(parameters, other.parameters)};
  }
};

class SizeReader {
 public:
  // `longest_pack`: elements of the largest argument pack, which may follow its expansion.
  explicit SizeReader(std::string_view name, std::uint64_t longest_pack = 1) noexcept
      : name_(name), longest_pack_(longest_pack) {}

  std::optional<std::uint64_t> read();
  [[nodiscard]] std::uint64_t longest_pack() const noexcept { return longest_pack_; }

 private:
  // A level of recursion.
  struct Level {
    explicit Level(SizeReader& reader) noexcept : depth(reader.depth_) {
      if (++depth > kDeepestItaniumName) reader.failed_ = true;
    }
    ~Level() { --depth; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    int& depth;
  };

  [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept {
    return failed_ || at_ + ahead >= name_.size() ? '\0' : name_[at_ + ahead];
  }
  bool take(std::string_view text) noexcept {
    if (failed_ || !name_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  bool take_any(std::string_view letters) noexcept {
    if (peek() == '\0' || letters.find(peek()) == std::string_view::npos) return false;
    ++at_;
    return true;
  }
  void need(std::string_view text) noexcept {
    if (!take(text)) failed_ = true;
  }
  Size fail() noexcept {
    failed_ = true;
    return {};
  }
  Size checked(const Size& size) noexcept {
    return size.characters > kMostItaniumText || size.parameters > kMostItaniumText ? fail() : size;
  }
  Size candidate(const Size& size) {
    if (!failed_) candidates_.push_back(checked(size));
    return size;
  }

  std::uint64_t number() noexcept;
  // A number that may be missing, and "_".
  void compact_number() noexcept;

  // A name and, of a function, the types of its return and parameters.
  Size encoding();
  Size function();
  Size special_name();
  void call_offset(char kind) noexcept;
  Size name();
  Size nested_name();
  Size local_name();
  void discriminator() noexcept;
  Size unqualified_name();
  Size source_name() noexcept;
  Size operator_name();
  Size conversion();

  Size template_parameter();
  Size template_arguments(bool is_pack = false);
  Size template_argument(bool is_in_pack = false);
  Size arguments_to_end();
  Size substitution();
  // "_" is 0, "0_" is 1: digits to the base of 36.
  std::uint64_t sequence_number() noexcept;

  // "r", "V" and "K", and what functions have.
  Size qualifiers();
  Size type();
  Size parameter_type();
  Size substituted_type();
  // Types that begin with "D".
  Size other_type();
  // Each element of a pack repeats the pattern.
  Size expanded(const Size& pattern) noexcept;
  Size function_type();
  // Types of the return and of parameters.
  Size function_types();

  Size literal();
  // Expressions up to a mark.
  Size expressions(std::string_view end);
  Size expression();
  Size expression_in_level();
  // Casts, constructions, and operators of types.
  Size expression_with_type();
  // A name in a scope that depends on template arguments: a type or names, and a name.
  Size unresolved_name();
  Size with_arguments(const Size& size) { return peek() == 'I' ? size + template_arguments() : size; }
  Size fold(int operands);
  // An operator of one, two or three operands.
  Size operation(const Size& word);

  std::string_view name_;
  std::size_t at_ = 0;
  std::vector<Size> candidates_;  // of substitutions
  Size argument_;                 // the largest template argument of the encoding
  std::uint64_t longest_pack_;
  std::uint64_t longest_name_ = 0;
  std::uint64_t lambdas_ = 0;
  int depth_ = 0;
  int conversions_ = 0;
  bool is_conversion_ = false;
  bool failed_ = false;
};

}  // namespace ptkit::code::symbol::itanium
