// The time stamp counter and its relation to CLOCK_MONOTONIC and CLOCK_REALTIME.
#pragma once

#include <cstdint>

#include "formats/ptk/writer.h"
#include "trace/bundle.h"

namespace ptkit::capture {

[[nodiscard]] std::uint64_t read_tsc() noexcept;
// Reads all clocks at once, within some tens of nanoseconds.
[[nodiscard]] formats::ClockSample sample_clocks() noexcept;

// Sets time_mult and time_shift with the precision of a 32-bit time_mult.
void set_rate(trace::Clock& clock, double ns_per_tick);

// Measures the TSC frequency from its construction on. A longer time gives a better result.
class TscCalibration {
 public:
  TscCalibration();  // takes some milliseconds, so that calibrate() is accurate from the start
  void calibrate(trace::Clock& clock) const;  // tsc_hz and the perf conversion

 private:
  std::uint64_t first_tsc_;
  std::int64_t first_ns_;
};

}  // namespace ptkit::capture
