// Patterns of names, as fnmatch(3) without flags matches them.
#pragma once

#include <string>

namespace ptkit::base {

// "*" is any text, "?" any byte, "[a-z]" one of these and "[!a-z]" one of the others; "\" takes the meaning
// of the next byte. Any other byte is itself.
[[nodiscard]] bool matches_pattern(const std::string& pattern, const std::string& name) noexcept;

}  // namespace ptkit::base
