// The grammar is that of LLVM's MicrosoftDemangle.cpp. Names that LLVM takes and this reader does not stay
// mangled.
#include "code/symbol/names/microsoft_size.h"

#include <algorithm>
#include <array>
#include <utility>

#include "code/symbol/names/letters.h"

namespace ptkit::code::symbol {
namespace {

constexpr int kDeepestName = 200;
constexpr std::size_t kMostReferences = 10;  // of one function or template

// Sizes of what back references of a function or template refer to, in the order in which it was read.
class References {
 public:
  // Without equal names, demanglers count fewer than these. So the n-th one of theirs is the n-th or a later
  // one.
  void add(std::uint64_t size) noexcept {
    for (std::size_t i = 0; i <= count_ && i < kMostReferences; ++i) most_[i] = std::max(most_[i], size);
    ++count_;
  }
  [[nodiscard]] std::optional<std::uint64_t> at(char digit) const noexcept {
    const auto index = static_cast<std::size_t>(digit - '0');
    return digit >= '0' && index < std::min(count_, kMostReferences) ? std::optional(most_[index])
                                                                     : std::nullopt;
  }

 private:
  std::array<std::uint64_t, kMostReferences> most_{};  // maximum of this one and all later ones
  std::size_t count_ = 0;
};

class SizeReader {
 public:
  explicit SizeReader(std::string_view name) noexcept : rest_(name) {}

  std::optional<std::uint64_t> read() {
    const std::uint64_t size = symbol();
    return failed_ || !rest_.empty() ? std::nullopt : std::optional(size + repeated_);
  }

 private:
  // A level of recursion.
  struct Level {
    explicit Level(SizeReader& reader) noexcept : depth(reader.depth_) {
      if (++depth > kDeepestName) reader.failed_ = true;
    }
    ~Level() { --depth; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    int& depth;
  };
  enum class Kind : std::uint8_t { SYMBOL, TYPE };

  [[nodiscard]] char front() const noexcept { return rest_.empty() ? '\0' : rest_.front(); }
  bool take(std::string_view text) noexcept {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  char take_letter() noexcept {
    if (rest_.empty()) failed_ = true;
    if (failed_) return '\0';
    const char letter = rest_.front();
    rest_.remove_prefix(1);
    return letter;
  }
  // One of some letters.
  bool take_any(std::string_view letters) noexcept {
    if (rest_.empty() || letters.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::uint64_t fail() noexcept {
    failed_ = true;
    return 0;
  }
  std::uint64_t checked(std::uint64_t size) noexcept { return size > kMostMicrosoftText ? fail() : size; }

  // A whole symbol: '?', its name and what it is.
  std::uint64_t symbol() {
    const Level level(*this);
    if (failed_ || !take("?")) return fail();
    // Functions that initialise or destroy a variable.
    const bool is_stub = take("?__E") || take("?__F");
    if (is_stub) take("?");
    // Constructors, and conversions, repeat the name of their class or their type.
    const std::uint64_t copies = rest_.starts_with('?') ? 2 : 1;
    std::uint64_t size = qualified(Kind::SYMBOL);
    if (is_stub && is_storage(front())) {
      size += variable();
      while (take("@")) {
      }
    }
    return checked(copies * (size + encoding()));
  }

  static bool is_storage(char letter) noexcept { return letter >= '0' && letter <= '4'; }

  std::uint64_t encoding() {
    if (failed_) return 0;
    if (is_storage(front())) return variable();
    take("$$J0");  // extern "C"
    const char kind = take_letter();
    if (kind == '9') return 0;  // extern "C", no type
    if (kind == '$') {          // a thunk that adjusts `this`
      const bool is_extended = take("R");
      if (!take_any("012345")) return fail();
      for (int i = is_extended ? 4 : 2; i > 0; --i) number();
      return function(true);
    }
    if (kind < 'A' || kind > 'Z') return fail();
    const unsigned flags = static_cast<unsigned>(kind - 'A') % 8;  // private, protected, public in turn
    const bool is_global = kind >= 'Y';
    if (!is_global && (flags == 6 || flags == 7)) number();
    const bool has_this = !is_global && flags != 2 && flags != 3;
    return function(has_this);
  }

  std::uint64_t variable() {
    rest_.remove_prefix(1);
    const bool is_pointer = begins_pointer();
    const bool is_member = is_pointer && begins_member_pointer();
    std::uint64_t size = type();
    if (is_pointer) {
      pointer_qualifiers();
      qualifiers();
      if (is_member) size += qualified(Kind::TYPE);
    } else {
      qualifiers();
    }
    return size;
  }

  // A name and its scopes, up to '@'.
  std::uint64_t qualified(Kind kind) {
    const Level level(*this);
    std::uint64_t size = unqualified(kind);
    while (!failed_ && !take("@")) size = checked(size + 2 + scope());
    return size;
  }

  std::uint64_t unqualified(Kind kind) {
    if (is_decimal(front())) return reference(names_);
    if (take("?$")) return instance(kind == Kind::TYPE);
    if (kind == Kind::SYMBOL && take("?")) return operator_name();
    return simple_name();
  }

  std::uint64_t scope() {
    if (is_decimal(front())) return reference(names_);
    if (take("?$")) return instance(true);
    if (take("?A")) {  // an anonymous namespace
      const std::size_t size = skip_to_end_of_name();
      names_.add(size);
      return size;
    }
    if (take("?")) {  // in a function
      number();
      return take("?") ? repeated(symbol()) : fail();
    }
    return simple_name();
  }

  std::uint64_t simple_name() {
    const std::size_t size = skip_to_end_of_name();
    if (size == 0) return fail();
    names_.add(size);
    return size;
  }

  std::size_t skip_to_end_of_name() {
    const std::size_t end = rest_.find('@');
    if (end == std::string_view::npos) return fail();
    rest_.remove_prefix(end + 1);
    return end;
  }

  // After '?'. Conversions have the type of their function's return.
  std::uint64_t operator_name() {
    if (take("__")) {
      const char code = take_letter();
      if (code == 'K') return simple_name();
      return is_upper(code) && code != 'E' && code != 'F' ? 0 : fail();
    }
    const bool is_second = take("_");
    const char code = take_letter();
    if (is_second)
      return std::string_view("0123456DEFGHIJKLMNOTUV").find(code) == std::string_view::npos ? fail() : 0;
    return is_decimal(code) || is_upper(code) ? 0 : fail();
  }

  // A template's instance, which has back references of its own.
  std::uint64_t instance(bool is_memorised) {
    const Level level(*this);
    if (failed_) return 0;
    const References outer_names = std::exchange(names_, {});
    const References outer_parameters = std::exchange(parameters_, {});
    std::uint64_t size = unqualified(Kind::SYMBOL);
    while (!failed_ && !take("@")) size = checked(size + 2 + template_argument());
    names_ = outer_names;
    parameters_ = outer_parameters;
    if (!is_memorised) return size;
    names_.add(size);
    return repeated(size);
  }

  // Of text that demanglers write once more.
  std::uint64_t repeated(std::uint64_t size) noexcept {
    repeated_ = checked(repeated_ + size);
    return size;
  }

  std::uint64_t template_argument() {
    if (take("$S") || take("$$V") || take("$$$V") || take("$$Z")) return 0;
    if (take("$$Y")) return qualified(Kind::TYPE);
    if (take("$$B")) return type();
    if (take("$$C")) {
      qualifiers();
      return type();
    }
    if (rest_.starts_with("$1?") || rest_.starts_with("$E?")) {
      rest_.remove_prefix(2);
      const std::uint64_t size = repeated(symbol());
      names_.add(size);
      return size;
    }
    if (take("$0")) return number();
    // Pointers to members of classes with several bases are rare: "$F", "$G", "$H", "$I", "$J".
    if (front() == '$' && !rest_.starts_with("$$A") && !rest_.starts_with("$$Q") && !rest_.starts_with("$$T"))
      return fail();
    return type();
  }

  std::uint64_t reference(const References& of) noexcept {
    const auto size = of.at(take_letter());
    return size ? *size : fail();
  }

  std::uint64_t number() {
    take("?");
    if (is_decimal(front())) {
      rest_.remove_prefix(1);
      return 2;
    }
    std::uint64_t size = 0;
    while (front() >= 'A' && front() <= 'P') {
      rest_.remove_prefix(1);
      ++size;
    }
    return take("@") ? 2 * size : fail();
  }

  bool qualifiers() noexcept { return take_any("ABCDQRST"); }
  // __ptr64, __restrict and __unaligned.
  void pointer_qualifiers() noexcept {
    take("E");
    take("I");
    take("F");
  }

  [[nodiscard]] bool begins_pointer() const noexcept {
    return rest_.starts_with("$$Q") ||
           (!rest_.empty() && std::string_view("APQRS").find(rest_.front()) != std::string_view::npos);
  }

  [[nodiscard]] bool begins_member_pointer() const noexcept {
    if (std::string_view("PQRS").find(front()) == std::string_view::npos) return false;
    std::string_view after = rest_.substr(1);
    if (!after.empty() && is_decimal(after.front())) return after.front() == '8';
    for (const char letter : {'E', 'I', 'F'}) {
      if (after.starts_with(letter)) after.remove_prefix(1);
    }
    return !after.empty() && std::string_view("QRST").find(after.front()) != std::string_view::npos;
  }

  std::uint64_t type() {
    const Level level(*this);
    if (failed_) return 0;
    if (take("$$T")) return 1;
    if (take("$$A8@@")) return function(true);
    if (take("$$A6")) return function(false);
    if (begins_member_pointer()) return checked(member_pointer());
    if (begins_pointer()) return checked(pointer());
    if (take("Y")) return array();
    if (take("W4") || take_any("TUV")) return qualified(Kind::TYPE);
    if (take("_")) return take_any("NJKWQSUPT") ? 1 : fail();
    return take_any("XDCEFGHIJKMNO") ? 1 : fail();
  }

  std::uint64_t pointer() {
    if (!take("$$Q")) rest_.remove_prefix(1);
    if (take("6")) return 1 + function(false);
    pointer_qualifiers();
    qualifiers();
    return 1 + type();
  }

  std::uint64_t member_pointer() {
    rest_.remove_prefix(1);
    if (take("8")) {
      const std::uint64_t owner = qualified(Kind::TYPE);
      return owner + function(true);
    }
    pointer_qualifiers();
    qualifiers();
    const std::uint64_t owner = qualified(Kind::TYPE);
    return owner + type();
  }

  std::uint64_t array() {
    if (!is_decimal(front())) return fail();
    std::uint64_t size = 0;
    for (int dimensions = take_letter() - '0' + 1; dimensions > 0 && !failed_; --dimensions)
      size += 2 + number();
    if (take("$$C")) qualifiers();
    return size + type();
  }

  std::uint64_t function(bool has_this) {
    const Level level(*this);
    if (failed_) return 0;
    if (has_this) {
      pointer_qualifiers();
      take_any("GH");
      qualifiers();
    }
    take_letter();  // calling convention
    std::uint64_t size = 0;
    if (!take("@")) {  // constructors return nothing
      if (take("?")) qualifiers();
      size += type();
    }
    size += parameters();
    return take("Z") || take("_E") ? checked(size) : fail();
  }

  std::uint64_t parameters() {
    if (take("X")) return 0;
    std::uint64_t size = 0;
    while (!failed_ && front() != '@' && front() != 'Z') {
      if (is_decimal(front())) {
        size = checked(size + 2 + reference(parameters_));
        continue;
      }
      const std::size_t before = rest_.size();
      const std::uint64_t own = type();
      if (before - rest_.size() > 1) parameters_.add(own);
      size = checked(size + 2 + own);
    }
    return take("@") || take("Z") ? size : fail();
  }

  std::string_view rest_;
  References names_;
  References parameters_;
  std::uint64_t repeated_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<std::uint64_t> microsoft_size(std::string_view raw_name) noexcept {
  if (raw_name.size() > kLongestMicrosoftName) return std::nullopt;
  return SizeReader(raw_name).read();
}

}  // namespace ptkit::code::symbol
