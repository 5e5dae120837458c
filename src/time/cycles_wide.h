// Vectorised passes over the CYC packets of a segment, eight at once, with the results of the scalar code.
// Only passes without a loop-carried dependency are here. Segments are short, so the end of a loop dominates
// its cost.
#pragma once

#include "time/point.h"

namespace ptkit::time {

// Multiplies each weight by `factor`, and sets all margins.
void scale_wide(Cycles& cycles, std::size_t begin, std::size_t end, double factor, double margin) noexcept;
// Rank::CYC where a CYC packet has weight, else `before`.
void rank_wide(Cycles& cycles, std::size_t begin, std::size_t end, Rank before) noexcept;
// Turns ticks since `base` in `low` into lower limits: `off` ticks lower, and not below `base`.
void limit_low_wide(Cycles& cycles, std::size_t begin, std::size_t end, double base, double off) noexcept;
// Turns ticks up to `base` in `high` into upper limits: `off` ticks higher, and not above `base`. Swaps
// limits that cross.
void limit_high_wide(Cycles& cycles, std::size_t begin, std::size_t end, double base, double off) noexcept;

}  // namespace ptkit::time
