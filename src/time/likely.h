// The most likely time of a point whose limits are apart.
#pragma once

#include <cstddef>

#include "time/history.h"

namespace ptkit::time {

// In ticks. The core clock stopped for a while where the limits of a CYC packet are apart: the lower one
// counts cycles from the MTC before, the upper one back from the MTC after. A stop that goes on past an MTC
// is seen on both sides of it, which tells on which side of the CYC packet it lies. Where MTCs are missing up
// to a TSC, clocks stood until that TSC. `mtc_ticks`: between two MTCs; 0: there are none.
[[nodiscard]] std::uint64_t likely_time(const History& points, std::size_t index, double mtc_ticks) noexcept;

}  // namespace ptkit::time
