#include "code/symbol/names/name_filter.h"

#include <algorithm>
#include <cstddef>

#include "code/symbol/names/letters.h"

namespace ptkit::code::symbol {
namespace {

// Words of demanglers of C++ that mangled names do not contain. Any other run of letters and underscores in
// a demangled name is an identifier's, which the mangled name has as it is.
constexpr std::string_view kWords =
    "abi alias alignof allocator anonymous arg auto basic_iostream basic_istream basic_ostream "
    "basic_string bfloat _t _BitInt block literal bool char char_traits class clone co_await complex const "
    "const_cast constexpr construction constructors covariant decimal decltype default delete destructors "
    "double dynamic_cast enable_if enum explicit false final float _Float __float fn for friend function "
    "_Fract _Accum _Sat global guard half hidden id imaginary _Complex _Imaginary in inheriting init "
    "initializer int __int invocation iostream istream java keyed lambda long ll ull module name namespace "
    "new noexcept non nullptr nullptr_t object operator ostream parameter parm pixel pointer reference "
    "reinterpret_cast requires resource restrict __restrict __restrict__ return safe short signed sizeof "
    "static_cast std string struct template temporary this throw thunk TLS to transaction transaction_safe "
    "true type typeid typeinfo typename ul union unnamed unsigned variable vector __vector virtual void "
    "volatile vtable VTT wchar_t wrapper "
    // Microsoft's.
    "adjustor atexit cdecl char8_t Class clrcall closure copy ctor deleting Descriptor destructor "
    "displacement dtor dynamic eh fastcall Hierarchy iterator local managed map namespace' pascal private "
    "protected ptr64 public regcall returning RTTI scalar stdcall swift swiftasync thiscall typeof udt "
    "unaligned vbase vbtable vcall vectorcall vftable vtordisp vtordispex";

bool is_word_letter(char letter) noexcept { return is_lower(letter) || is_upper(letter) || letter == '_'; }

std::string_view longest_run(std::string_view text) noexcept {
  std::string_view longest;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::ranges::find_if_not(text.substr(at), is_word_letter);
    const auto run = static_cast<std::size_t>(end - text.substr(at).begin());
    if (run > longest.size()) longest = text.substr(at, run);
    at += run + 1;
  }
  return longest;
}

// The part of a pattern that has neither sets nor escapes.
std::string_view without_sets(std::string_view pattern) noexcept {
  return pattern.substr(0, pattern.find_first_of("[\\"));
}

}  // namespace

NameFilter::NameFilter(std::string_view fixed) : letters_(longest_run(fixed)) {
  if (kWords.find(letters_) != std::string_view::npos) letters_.clear();
}

NameFilter NameFilter::of_name(std::string_view name) { return NameFilter(name); }

NameFilter NameFilter::of_pattern(std::string_view pattern) { return NameFilter(without_sets(pattern)); }

bool NameFilter::admits(std::string_view raw_name) const noexcept {
  if (letters_.empty() || raw_name.find(letters_) != std::string_view::npos) return true;
  // Rust writes letters as numbers, too. Short forms join what is around brackets.
  return raw_name.starts_with("_R") || raw_name.find_first_of("$<([{") != std::string_view::npos;
}

}  // namespace ptkit::code::symbol
