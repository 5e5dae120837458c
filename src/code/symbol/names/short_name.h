// Short forms of demangled names: what people say.
#pragma once

#include <string>
#include <string_view>

namespace ptkit::code::symbol {

inline constexpr std::string_view kScope = "::";  // between the parts of a name

// The name of a function of C++ or Rust without template and generic arguments, parameters, return type and
// ABI tags: "ns::Map::insert" of "int ns::Map<int, long>::insert<int>(int const&) const". What is known of a
// clone or variant stays: " [clone .cold]", " (avx2)", "@plt". Names that are not of this form are returned
// as they are.
[[nodiscard]] std::string short_name(std::string_view name);

// A name without the variant that an IFUNC chooses: "memcpy" of "memcpy (avx_unaligned_erms)".
[[nodiscard]] std::string_view without_variant(std::string_view name) noexcept;

// Whether a short name ends with a part that names a function: "Map::insert" and "insert" of
// "ns::Map::insert".
[[nodiscard]] bool ends_with_part(std::string_view short_name, std::string_view part) noexcept;

}  // namespace ptkit::code::symbol
