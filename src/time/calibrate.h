// Clock parameters: configured ones are checked against the start of the stream, others are inferred from it.
#pragma once

#include <span>

#include "time/point.h"
#include "trace/buffer.h"

namespace ptkit::time {

[[nodiscard]] ClockModel calibrate(base::Bytes stream, std::span<const trace::KnownLoss> losses,
                                   const trace::Clock& clock, const packet::Errata& errata);
// For a stream of which no more is produced than has to be read.
[[nodiscard]] ClockModel calibrate(const trace::TraceBuffer& stream, std::span<const trace::KnownLoss> losses,
                                   const trace::Clock& clock, const packet::Errata& errata);

}  // namespace ptkit::time
