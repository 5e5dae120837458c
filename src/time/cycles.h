// Times of CYC packets, from the cycles between them and the times of TSC and MTC packets on both sides.
#pragma once

#include "time/point.h"

namespace ptkit::time {

// Sets low, high and source of every point of an opened frame. TSC and usable MTC points already have low and
// high.
//
// A cycle takes at least bus_ticks / CBR ticks, even if the clock stops in between. So cycles after a known
// time give a lower limit, and cycles before the next known time give an upper limit:
//
//   known time -- lower limits: + cycles --> CYC CYC CYC <-- upper limits: - cycles -- known time
//
// Both limits are equal where the clock did not stop. `last_cyc_low`: lower limit of the CYC packet before
// the first point, which the next CYC counts from; -kNoLimit: unknown.
void resolve_cycles(Frame& frame, const ClockModel& model, double last_cyc_low);

// Upper limit of the time after the last point, if no TSC follows; kNoLimit: unknown.
[[nodiscard]] double tail_limit(const Frame& frame, const ClockModel& model) noexcept;

}  // namespace ptkit::time
