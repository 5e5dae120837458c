// Bits of registers and of records.
#pragma once

#include <cstdint>

namespace ptkit::base {

[[nodiscard]] constexpr std::uint64_t bit(unsigned number) noexcept { return std::uint64_t{1} << number; }

}  // namespace ptkit::base
