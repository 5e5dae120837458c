// Names of Microsoft's scheme ("?f@@YAXXZ"), demangled by a library: LLVM's, or the system's on Windows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ptkit::code::symbol {

// Whether ptkit was built with a library that demangles such names. Without one, they stay as they are.
[[nodiscard]] bool has_microsoft_demangler() noexcept;

[[nodiscard]] constexpr bool is_microsoft_name(std::string_view raw_name) noexcept {
  return raw_name.starts_with('?');
}

// "f(void)", "A::f(class B)": without access, calling convention and return type, as names of C++ are
// elsewhere. nullopt: it is no such name, microsoft_size() refuses it, or there is no library.
[[nodiscard]] std::optional<std::string> demangle_microsoft(std::string_view raw_name);

// Without bounds: the library's text of a name that microsoft_size() takes. nullopt: none.
[[nodiscard]] std::optional<std::string> undecorate(const std::string& raw_name);

}  // namespace ptkit::code::symbol
