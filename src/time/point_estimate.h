// Estimate of the time of a point with different lower and upper limits.
#pragma once

#include <cstddef>

#include "time/history.h"

namespace ptkit::time {

// Most likely time, in TSC ticks. If the limits of a CYC packet differ, the core clock stopped for a while.
// The lower limit counts cycles from the MTC before, the upper limit counts back from the MTC after. A stop
// that continues over an MTC is visible on both sides of the MTC, which shows on which side of the CYC packet
// the stop is. Where MTCs are missing up to a TSC, the clocks stopped until that TSC. `mtc_ticks`: ticks
// between two MTCs; 0: there are none.
[[nodiscard]] std::uint64_t estimate_time(const History& points, std::size_t index,
                                          double mtc_ticks) noexcept;

}  // namespace ptkit::time
