#include "code/symbol/names/rust_v0.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "code/symbol/names/rust_reader.h"

namespace ptkit::code::symbol {
namespace {

// References to earlier parts of a name can make it longer exponentially.
constexpr std::size_t kLongestText = std::size_t{1} << 16U;
constexpr int kMostParts = 20'000;
constexpr int kDeepest = 200;

// The types with a letter of their own, by letter; empty: none.
constexpr std::string_view kBasicTypes[26] = {
    "i8",   "bool", "char", "f64", "str", "f32", "",    "u8", "isize", "usize", "",    "i32", "u32",
    "i128", "u128", "_",    "",    "",    "i16", "u16", "()", "...",   "",      "i64", "u64", "!"};

// A recursive descent parser that prints what it reads. After a failure, it reads and prints nothing.
class Parser : private RustReader {
 public:
  explicit Parser(std::string_view mangled) : RustReader(mangled) {}

  std::optional<std::string> run() {
    path(true);
    if (!failed_ && at_ < mangled_.size() && is_upper(mangled_[at_])) {
      silent_ = true;  // the crate that a generic function is instantiated in
      path(false);
    }
    if (failed_ || at_ != mangled_.size()) return std::nullopt;
    return std::move(text_);
  }

 private:
  // Ends with the object that counts a part of the name; false: too many, or too deep.
  class Part {
   public:
    explicit Part(Parser& parser) : parser_(parser) {
      ++parser_.depth_;
      if (++parser_.parts_ > kMostParts || parser_.depth_ > kDeepest) parser_.failed_ = true;
    }
    ~Part() { --parser_.depth_; }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    Parser& parser_;
  };

  void print(std::string_view text) {
    if (silent_ || failed_) return;
    text_ += text;
    failed_ = text_.size() > kLongestText;
  }
  void print_number(std::uint64_t value) { print(std::to_string(value)); }

  // Reads the part at an earlier offset.
  template <typename Read>
  void reference(const Read& read) {
    const std::size_t here = at_ - 1;
    const std::uint64_t target = base_62();
    if (failed_ || target >= here) {
      failed_ = true;
      return;
    }
    if (silent_) return;
    const std::size_t after = at_;
    at_ = static_cast<std::size_t>(target);
    read();
    at_ = after;
  }

  void path(bool is_value) {
    const Part part(*this);
    const char tag = next();
    switch (tag) {
      case 'C':
        print(identifier().text);
        return;
      case 'N':
        nested_path(is_value);
        return;
      case 'M':
      case 'X':
      case 'Y':
        implementation(tag);
        return;
      case 'I':
        path(is_value);
        print(is_value ? "::<" : "<");
        list([&] { generic_argument(); });
        print(">");
        return;
      case 'B':
        reference([&] { path(is_value); });
        return;
      default:
        failed_ = true;
    }
  }

  void nested_path(bool is_value) {
    const char space = next();
    path(is_value);
    const RustIdentifier name = identifier();
    if (is_lower(space)) {
      if (!name.text.empty()) print("::" + name.text);
      return;
    }
    print("::{");
    print(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string(1, space));
    if (!name.text.empty()) print(":" + name.text);
    print("#");
    print_number(name.disambiguator);
    print("}");
  }

  void implementation(char tag) {
    if (tag != 'Y') {  // where the implementation is
      optional_base_62('s');
      const bool was_silent = silent_;
      silent_ = true;
      path(false);
      silent_ = was_silent;
    }
    print("<");
    type();
    if (tag != 'M') {
      print(" as ");
      path(false);
    }
    print(">");
  }

  // Items up to "E", with commas.
  template <typename Item>
  std::size_t list(const Item& item) {
    std::size_t count = 0;
    for (; !failed_ && !eat('E'); ++count) {
      if (count != 0) print(", ");
      item();
    }
    return count;
  }

  void generic_argument() {
    if (eat('L')) {
      lifetime(base_62());
    } else if (eat('K')) {
      constant();
    } else {
      type();
    }
  }

  void lifetime(std::uint64_t index) {
    if (index == 0) {
      print("'_");
      return;
    }
    if (index > lifetimes_) {
      failed_ = true;
      return;
    }
    const std::uint64_t depth = lifetimes_ - index;
    print("'");
    if (depth < 26) {
      print(std::string(1, static_cast<char>('a' + depth)));
    } else {
      print("_");
      print_number(depth);
    }
  }

  // Reads something that may name lifetimes of its own: for<'a>.
  template <typename Read>
  void with_lifetimes(const Read& read) {
    const std::uint64_t count = optional_base_62('G');
    if (count > static_cast<std::uint64_t>(kMostParts)) failed_ = true;
    if (count != 0 && !failed_) {
      print("for<");
      for (std::uint64_t i = 0; i < count; ++i) {
        if (i != 0) print(", ");
        ++lifetimes_;
        lifetime(1);
      }
      print("> ");
    }
    read();
    lifetimes_ -= failed_ ? 0 : count;
  }

  void type() {
    const Part part(*this);
    const char tag = next();
    if (is_lower(tag)) {
      const std::string_view name = kBasicTypes[tag - 'a'];
      if (name.empty()) failed_ = true;
      print(name);
      return;
    }
    switch (tag) {
      case 'R':
      case 'Q':
        print("&");
        if (eat('L')) {
          if (const std::uint64_t index = base_62(); index != 0) {
            lifetime(index);
            print(" ");
          }
        }
        print(tag == 'Q' ? "mut " : "");
        type();
        return;
      case 'P':
      case 'O':
        print(tag == 'P' ? "*const " : "*mut ");
        type();
        return;
      default:
        compound_type(tag);
    }
  }

  void compound_type(char tag) {
    switch (tag) {
      case 'A':
      case 'S':
        print("[");
        type();
        if (tag == 'A') {
          print("; ");
          constant();
        }
        print("]");
        return;
      case 'T':
        print("(");
        if (list([&] { type(); }) == 1) print(",");
        print(")");
        return;
      case 'F':
        with_lifetimes([&] { function(); });
        return;
      case 'D':
        print("dyn ");
        with_lifetimes([&] { bounds(); });
        if (!eat('L')) failed_ = true;
        if (const std::uint64_t index = base_62(); index != 0) {
          print(" + ");
          lifetime(index);
        }
        return;
      case 'B':
        reference([&] { type(); });
        return;
      default:
        --at_;
        path(false);
    }
  }

  void function() {
    if (eat('U')) print("unsafe ");
    if (eat('K')) {
      std::string abi = eat('C') ? "C" : plain_identifier();
      std::ranges::replace(abi, '_', '-');
      print("extern \"" + abi + "\" ");
    }
    print("fn(");
    list([&] { type(); });
    print(")");
    if (eat('u')) return;
    print(" -> ");
    type();
  }

  // dyn First<Item = T> + Second
  void bounds() {
    for (std::size_t count = 0; !failed_ && !eat('E'); ++count) {
      if (count != 0) print(" + ");
      bool is_open = open_path();
      while (eat('p')) {
        print(is_open ? ", " : "<");
        is_open = true;
        print(plain_identifier() + " = ");
        type();
      }
      if (is_open) print(">");
    }
  }

  // Leaves out the ">" of generic arguments, and returns whether there are any.
  bool open_path() {
    const Part part(*this);
    bool is_open = false;
    if (eat('B')) {
      reference([&] { is_open = open_path(); });
    } else if (eat('I')) {
      path(false);
      print("<");
      list([&] { generic_argument(); });
      is_open = true;
    } else {
      path(false);
    }
    return is_open;
  }

  void constant() {
    const Part part(*this);
    if (eat('B')) {
      reference([&] { constant(); });
      return;
    }
    const char tag = next();
    if (tag == 'p') {
      print("_");
      return;
    }
    if (std::string_view("aslxni").find(tag) != std::string_view::npos && eat('n')) print("-");
    std::uint64_t value = 0;
    const std::string_view digits = hexadecimal(value);
    if (tag == 'b') {
      print(value == 0 ? "false" : "true");
    } else if (tag == 'c') {
      print(quoted(value));
    } else if (std::string_view("aslxnihtmyoj").find(tag) == std::string_view::npos) {
      failed_ = true;  // constants of structures are not read
    } else if (digits.size() > 16) {
      print("0x" + std::string(digits));
    } else {
      print_number(value);
    }
  }

  static std::string quoted(std::uint64_t letter) {
    if (letter >= 0x20 && letter < 0x7F && letter != '\'' && letter != '\\')
      return std::string("'") + static_cast<char>(letter) + "'";
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof digits, letter, 16);
    return "'\\u{" + std::string(digits, end.ptr) + "}'";
  }

  std::string text_;
  std::uint64_t lifetimes_ = 0;  // of all enclosing for<...>
  int parts_ = 0;
  int depth_ = 0;
  bool silent_ = false;
};

}  // namespace

std::optional<std::string> demangle_rust_v0(std::string_view raw_name) {
  if (!raw_name.starts_with("_R")) return std::nullopt;
  std::string_view mangled = raw_name.substr(2);
  std::string_view suffix;  // of LLVM: ".llvm.1234", ".cold"
  if (const std::size_t dot = mangled.find('.'); dot != std::string_view::npos) {
    suffix = mangled.substr(dot);
    mangled = mangled.substr(0, dot);
  }
  if (mangled.empty() || mangled.front() < 'A' || mangled.front() > 'Z') return std::nullopt;
  auto text = Parser(mangled).run();
  if (text && !suffix.starts_with(".llvm.")) *text += suffix;
  return text;
}

}  // namespace ptkit::code::symbol
