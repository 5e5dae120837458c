// Tables by number, and by module and number. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>

namespace ptkit::code::pdb {

// Memory of an entry.
inline constexpr std::uint64_t kEntryBytes = 64;

[[nodiscard]] inline std::uint64_t key_of(std::uint32_t module, std::uint32_t number) noexcept {
  constexpr unsigned kHalf = 32;
  return std::uint64_t{module} << kHalf | number;
}

}  // namespace ptkit::code::pdb
