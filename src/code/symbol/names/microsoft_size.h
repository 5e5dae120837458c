// Bounds of what demangling a name of Microsoft's scheme costs, before it is demangled.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptkit::code::symbol {

// Characters that a name becomes, without the fixed texts of operators and types. Back references repeat what
// they refer to, which may have some itself, so text can grow exponentially with the name's length: ten
// parameters that refer to each other make gigabytes of a hundred characters. nullopt: the name is none of a
// function or of a variable; or longer or nested deeper than compilers write it; or it becomes more than
// kMostMicrosoftText.
[[nodiscard]] std::optional<std::uint64_t> microsoft_size(std::string_view raw_name) noexcept;

// Compilers cut names at 4,096 characters, and write a hash for longer ones.
inline constexpr std::size_t kLongestMicrosoftName = 4096;
inline constexpr std::uint64_t kMostMicrosoftText = std::uint64_t{1} << 16U;
// A name becomes at most so many characters for each one of its own and of its size: "A" may be "__cdecl ".
inline constexpr std::uint64_t kFixedText = 48;

}  // namespace ptkit::code::symbol
