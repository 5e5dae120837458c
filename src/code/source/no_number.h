// Number that stands for no string, no range and no node where these have numbers.
#pragma once

#include <cstdint>

namespace ptkit::code::source {

inline constexpr std::uint32_t kNone = UINT32_MAX;

}  // namespace ptkit::code::source
