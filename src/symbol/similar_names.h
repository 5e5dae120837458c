// Names that are similar to one that does not exist. Internal to src/symbol.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ptkit::symbol {

[[nodiscard]] std::string lower_case(std::string_view text);
// A rank of similarity, lower is closer. nullopt if the names are not similar. `wanted` is in lower case.
[[nodiscard]] std::optional<std::size_t> similarity(const std::string& wanted, std::string_view candidate);

}  // namespace ptkit::symbol
