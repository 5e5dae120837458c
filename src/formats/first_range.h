// For many values at once: which of many ranges has each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ptkit::formats {

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

inline constexpr std::size_t kNoRange = std::numeric_limits<std::size_t>::max();

// Of each value the number of the first range that has it, or kNoRange. Ranges may overlap.
[[nodiscard]] std::vector<std::size_t> first_ranges(std::span<const Range> ranges,
                                                    std::span<const std::uint64_t> values);

}  // namespace ptkit::formats
