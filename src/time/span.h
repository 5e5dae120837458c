// First and last time of a stream, without decoding the whole stream.
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

// Search range for a TSC packet, or for a record with a time, from either end of a stream: the longest PSB
// period.
inline constexpr std::uint64_t kSpanSearchBytes = std::uint64_t{64} << 20U;

// Time of the first TSC packet, and estimated time of the last packet with a row (timing packets, CBR and
// PSB+ have none: recorders write them long after a thread has ended), from the last PSB+ with a TSC packet
// before it on. Of a stream without such packets: of the last one. For branch records: the first and the last
// known time. None if there is no such packet or time within kSpanSearchBytes of either end.
[[nodiscard]] std::optional<TimeSpan> span_of(const trace::Stream& stream, const trace::Clock& clock,
                                              const packet::Errata& errata);

// True if there is a TSC packet after the first PSB. Without one, no packet has a known time.
[[nodiscard]] bool has_tsc(base::Bytes stream, const packet::Errata& errata) noexcept;

}  // namespace ptkit::time
