// Names of Rust functions in the v0 scheme (RFC 2603). Internal to src/code/symbol.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ptkit::code::symbol {

// As rustc-demangle shows them, without hashes of crates. nullopt: no such name. Takes bounded time and
// memory.
[[nodiscard]] std::optional<std::string> demangle_rust_v0(std::string_view raw_name);

}  // namespace ptkit::code::symbol
