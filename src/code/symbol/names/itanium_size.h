// Bounds of what demangling a name of the Itanium C++ ABI costs, before it is demangled.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptkit::code::symbol {

// Characters that a name of a function or a variable ("_Z1fv") becomes at most. Substitutions (S0_) repeat
// what they refer to, which may have some itself, template parameters (T_) repeat arguments, and pack
// expansions repeat both, so text can grow exponentially with the name's length. nullopt: the name is none,
// or nested deeper than compilers write it, or it becomes more than kMostItaniumText.
[[nodiscard]] std::optional<std::uint64_t> itanium_size(std::string_view raw_name) noexcept;

// The C++ library demangles no longer one: it has 2,048 components at most.
inline constexpr std::size_t kLongestItaniumName = 1024;
inline constexpr std::uint64_t kMostItaniumText = std::uint64_t{1} << 20U;

}  // namespace ptkit::code::symbol
