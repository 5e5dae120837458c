// Demangles names of functions.
#pragma once

#include <string>
#include <string_view>

namespace ptkit::code::symbol {

// Demangles names of C++ (also Microsoft's), Rust (both schemes) and Python functions (python_name.h).
// Returns other names unchanged.
[[nodiscard]] std::string demangle(std::string_view raw_name);
// False: demangle() does not change the name.
[[nodiscard]] bool is_mangled(std::string_view raw_name) noexcept;

}  // namespace ptkit::code::symbol
