// Compares bytes of code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "base/bytes.h"

namespace ptkit::tables::calls {

[[nodiscard]] inline bool begins_with(base::Bytes code, std::initializer_list<std::uint8_t> bytes) noexcept {
  return code.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), code.begin());
}

}  // namespace ptkit::tables::calls
