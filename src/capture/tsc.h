// The time stamp counter and its relation to CLOCK_MONOTONIC.
#pragma once

#include <cstdint>

#include "trace/bundle.h"

namespace ptkit::capture {

[[nodiscard]] std::uint64_t read_tsc() noexcept;

// time_mult and time_shift, as exact as 32 bits of time_mult are.
void set_rate(trace::Clock& clock, double ns_per_tick);

// Measures from its construction on: the longer, the better.
class TscCalibration {
 public:
  TscCalibration();  // takes some milliseconds, so that calibrate() is good from the start
  void calibrate(trace::Clock& clock) const;  // tsc_hz and the perf conversion

 private:
  std::uint64_t first_tsc_;
  std::uint64_t first_ns_;
};

}  // namespace ptkit::capture
