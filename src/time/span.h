// When a stream begins and ends, found without decoding what lies between.
#pragma once

#include <cstdint>
#include <optional>

#include "packet/errata.h"
#include "trace/bundle.h"

namespace ptkit::time {

// TSC ticks.
struct TimeSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  bool operator==(const TimeSpan&) const = default;
};

// How far from either end of a stream a TSC packet or a time of a record is looked for: the longest PSB
// period.
inline constexpr std::uint64_t kSpanSearchBytes = std::uint64_t{64} << 20U;

// The first TSC packet, and the time at the last packet, estimated from the last PSB+ with a TSC packet on.
// Of branch records: the first and last time that is known. None if there is no such packet or time within
// kSpanSearchBytes of either end.
[[nodiscard]] std::optional<TimeSpan> span_of(const trace::Stream& stream, const trace::Clock& clock,
                                              const packet::Errata& errata);

}  // namespace ptkit::time
