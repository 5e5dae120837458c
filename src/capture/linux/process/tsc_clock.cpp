#include "capture/linux/process/tsc_clock.h"

#include <x86intrin.h>

#include <algorithm>
#include <ctime>

#include "trace/clock.h"

namespace ptkit::capture {

namespace {
constexpr std::int64_t kFirstMeasureNs = 10000000;
constexpr std::uint16_t kMostTimeShift = 31;  // as in Linux

std::int64_t read_ns(clockid_t clock) noexcept {
  timespec now{};
  static_cast<void>(::clock_gettime(clock, &now));
  return static_cast<std::int64_t>(now.tv_sec) * static_cast<std::int64_t>(trace::kNsPerSecond) + now.tv_nsec;
}

}  // namespace

std::uint64_t read_tsc() noexcept { return __rdtsc(); }

// The narrowest of several samples: an interrupt can come between two readings of the TSC.
formats::ClockSample sample_clocks() noexcept {
  formats::ClockSample best;
  std::uint64_t best_width = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t before = read_tsc();
    const std::int64_t monotonic = read_ns(CLOCK_MONOTONIC);
    const std::uint64_t after = read_tsc();
    const std::int64_t realtime = read_ns(CLOCK_REALTIME);
    const std::int64_t again = read_ns(CLOCK_MONOTONIC);
    const std::uint64_t width = read_tsc() - before;
    if (width >= best_width) continue;
    best_width = width;
    best = {before + (after - before) / 2, monotonic, realtime - (again - monotonic) / 2};
  }
  return best;
}

void set_rate(trace::Clock& clock, double ns_per_tick) {
  constexpr double kEnd = 4294967296.0;  // 2^32
  clock.time_shift = kMostTimeShift;
  const auto factor = [&] { return ns_per_tick * static_cast<double>(std::uint64_t{1} << clock.time_shift); };
  while (clock.time_shift > 0 && factor() >= kEnd) --clock.time_shift;
  clock.time_mult = static_cast<std::uint32_t>(std::clamp(factor(), 1.0, kEnd - 1));
}

TscCalibration::TscCalibration() {
  const formats::ClockSample first = sample_clocks();
  first_tsc_ = first.tsc;
  first_ns_ = first.monotonic_ns;
  while (sample_clocks().monotonic_ns - first_ns_ < kFirstMeasureNs) {
  }
}

void TscCalibration::calibrate(trace::Clock& clock) const {
  const formats::ClockSample last = sample_clocks();
  const double ns = static_cast<double>(std::max<std::int64_t>(last.monotonic_ns - first_ns_, 1));
  const double ticks = static_cast<double>(std::max<std::uint64_t>(last.tsc - first_tsc_, 1));
  clock.tsc_hz = static_cast<std::uint64_t>(ticks / ns * static_cast<double>(trace::kNsPerSecond));
  set_rate(clock, ns / ticks);
  clock.time_zero = 0;
  clock.time_zero = static_cast<std::uint64_t>(last.monotonic_ns) - trace::perf_ns_from_tsc(clock, last.tsc);
  clock.perf_time_known = true;
}

}  // namespace ptkit::capture
