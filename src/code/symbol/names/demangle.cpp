#include "code/symbol/names/demangle.h"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <optional>

#include "code/symbol/names/itanium_size.h"
#include "code/symbol/names/microsoft.h"
#include "code/symbol/names/python_name.h"
#include "code/symbol/names/rust_v0.h"

namespace ptkit::code::symbol {
namespace {

constexpr std::string_view kStub = "@plt";
constexpr std::string_view kLlvm = ".llvm.";  // and digits: LLVM's mark of a local symbol of another module

struct Freer {
  void operator()(char* text) const noexcept { std::free(text); }
};

// Rust's legacy scheme is that of C++ with "::h" and 16 hex digits at the end.
bool strip_rust_hash(std::string& name) {
  constexpr std::size_t kHashSize = 3 + 16;
  if (name.size() <= kHashSize || name.compare(name.size() - kHashSize, 3, "::h") != 0) return false;
  if (name.find_first_not_of("0123456789abcdef", name.size() - 16) != std::string::npos) return false;
  name.resize(name.size() - kHashSize);
  return true;
}

struct Escape {
  std::string_view code;
  std::string_view text;
};
constexpr std::array<Escape, 8> kRustEscapes = {
    {{"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"}, {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","}}};

// The text of the escape "$code$", or nullopt. A code is one of the letters above, or u and a code point in
// hex.
std::optional<std::string> rust_escape(std::string_view code) {
  for (const Escape& escape : kRustEscapes) {
    if (code == escape.code) return std::string(escape.text);
  }
  if (code.size() < 2 || code[0] != 'u' || code.size() > 3) return std::nullopt;
  if (code.find_first_not_of("0123456789abcdef", 1) != std::string_view::npos) return std::nullopt;
  const long value = std::strtol(std::string(code.substr(1)).c_str(), nullptr, 16);
  if (value < 0x20 || value > 0x7E) return std::nullopt;
  return std::string(1, static_cast<char>(value));
}

std::string decode_rust(std::string_view name) {
  std::string text;
  for (std::size_t at = 0; at < name.size();) {
    const bool starts_part = at == 0 || name.substr(0, at).ends_with("::");
    if (starts_part && name.substr(at).starts_with("_$"))
      ++at;  // "_" before an escape at the beginning of a part
    if (name[at] == '$') {
      const std::size_t end = name.find('$', at + 1);
      const auto escape =
          end == std::string_view::npos ? std::nullopt : rust_escape(name.substr(at + 1, end - at - 1));
      if (escape) {
        text += *escape;
        at = end + 1;
        continue;
      }
    }
    if (name.substr(at).starts_with("..")) {
      text += "::";
      at += 2;
      continue;
    }
    text += name[at++];
  }
  return text;
}

std::string demangle_plain(std::string_view raw_name) {
  if (auto name = demangle_rust_v0(raw_name)) return *name;
  if (auto name = python_name(raw_name)) return *name;
  if (auto name = demangle_microsoft(raw_name)) return *name;
  const std::string raw(raw_name.substr(0, raw_name.find(kLlvm)));
  if (!itanium_size(raw)) return std::string(raw_name);
  int status = 0;
  const std::unique_ptr<char, Freer> text(abi::__cxa_demangle(raw.c_str(), nullptr, nullptr, &status));
  if (status != 0 || !text) return std::string(raw_name);
  std::string name = text.get();
  return strip_rust_hash(name) ? decode_rust(name) : name;
}

}  // namespace

bool is_mangled(std::string_view raw_name) noexcept {
  return raw_name.starts_with("_Z") || raw_name.starts_with("_R") || is_python_name(raw_name) ||
         (is_microsoft_name(raw_name) && has_microsoft_demangler());
}

std::string demangle(std::string_view raw_name) {
  // Mangled names have no spaces: a space begins what is known of a function of an IFUNC.
  const std::size_t space = raw_name.find(' ');
  if (space != std::string_view::npos && raw_name.starts_with('_'))
    return demangle_plain(raw_name.substr(0, space)).append(raw_name.substr(space));
  if (raw_name.ends_with(kStub)) {
    return demangle_plain(raw_name.substr(0, raw_name.size() - kStub.size())) + std::string(kStub);
  }
  return demangle_plain(raw_name);
}

}  // namespace ptkit::code::symbol
