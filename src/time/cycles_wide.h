// The passes over CYC packets of a segment that wait for nothing, eight at once. The same limits as without:
// segments are short, and what a loop costs is to find its end.
#pragma once

#include "time/point.h"

namespace ptkit::time {

// Each weight times `factor`; all margins.
void scale_wide(Cycles& cycles, std::size_t begin, std::size_t end, double factor, double margin) noexcept;
// Rank::CYC where a cycle has weight, else `before`.
void rank_wide(Cycles& cycles, std::size_t begin, std::size_t end, Rank before) noexcept;
// `low` has ticks since `base`; it becomes the limit, `off` below, not below `base`.
void limit_low_wide(Cycles& cycles, std::size_t begin, std::size_t end, double base, double off) noexcept;
// `high` has ticks up to `base`; it becomes the limit, `off` above, not above `base`. Limits that cross are
// put in order.
void limit_high_wide(Cycles& cycles, std::size_t begin, std::size_t end, double base, double off) noexcept;

}  // namespace ptkit::time
