// Clock parameters: configured ones are checked against the start of the stream, others are inferred from it.
#pragma once

#include <span>

#include "time/point.h"

namespace ptkit::time {

[[nodiscard]] ClockModel calibrate(base::Bytes stream, std::span<const trace::KnownLoss> losses,
                                   const trace::Clock& clock, const packet::Errata& errata);

}  // namespace ptkit::time
