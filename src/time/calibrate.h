// Clock parameters: those that were configured, checked against the beginning of the stream, and what of the
// others can be inferred from it.
#pragma once

#include <span>

#include "time/point.h"

namespace ptkit::time {

[[nodiscard]] ClockModel calibrate(base::Bytes stream, std::span<const trace::KnownLoss> losses,
                                   const trace::Clock& clock, const packet::Errata& errata);

}  // namespace ptkit::time
