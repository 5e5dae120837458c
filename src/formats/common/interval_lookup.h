// Interval stabbing by a sweep line: finds for each of many values the first interval that contains it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ptkit::formats {

struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

inline constexpr std::size_t kNoInterval = std::numeric_limits<std::size_t>::max();

// Returns for each value the index of the first interval that contains it, or kNoInterval. Intervals may
// overlap.
[[nodiscard]] std::vector<std::size_t> lookup_intervals(std::span<const Interval> intervals,
                                                        std::span<const std::uint64_t> values);

}  // namespace ptkit::formats
