// Times of CYC packets, from the cycles between them and the times of TSC and MTC packets on both sides.
#pragma once

#include "time/point.h"

namespace ptkit::time {

// Sets low, high and source of every point of an opened frame. TSC and usable MTC points come with low and
// high set.
//
// A cycle takes at least bus_ticks / CBR ticks, whatever stops the clock: so going forward from a known time
// the cycles give a lower limit, and going backward from the next known time an upper limit. Both meet where
// the clock did not stop.
// `last_cyc_low`: lower limit of the CYC packet before the first point, from which the next one counts;
// -kNoLimit: not known.
void resolve_cycles(Frame& frame, const ClockModel& model, double last_cyc_low);

// Upper limit of what follows the last point where no TSC does; kNoLimit: none is known.
[[nodiscard]] double tail_limit(const Frame& frame, const ClockModel& model) noexcept;

}  // namespace ptkit::time
