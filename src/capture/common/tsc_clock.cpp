#include "capture/common/tsc_clock.h"

#include <x86intrin.h>

#include <algorithm>
#include <ctime>

#include "trace/clock.h"

namespace ptkit::capture {

namespace {
constexpr std::uint64_t kFirstMeasureNs = 10000000;
constexpr std::uint16_t kMostTimeShift = 31;  // as in Linux

struct Sample {
  std::uint64_t tsc = 0;
  std::uint64_t ns = 0;
};

// The narrowest of several samples: an interrupt can come between two readings of the TSC.
Sample sample() {
  Sample best;
  std::uint64_t best_width = ~std::uint64_t{0};
  for (int i = 0; i < 8; ++i) {
    timespec now{};
    const std::uint64_t before = read_tsc();
    static_cast<void>(::clock_gettime(CLOCK_MONOTONIC, &now));
    const std::uint64_t after = read_tsc();
    if (after - before >= best_width) continue;
    best_width = after - before;
    best.tsc = before + best_width / 2;
    best.ns = static_cast<std::uint64_t>(now.tv_sec) * trace::kNsPerSecond +
              static_cast<std::uint64_t>(now.tv_nsec);
  }
  return best;
}

}  // namespace

std::uint64_t read_tsc() noexcept { return __rdtsc(); }

void set_rate(trace::Clock& clock, double ns_per_tick) {
  constexpr double kEnd = 4294967296.0;  // 2^32
  clock.time_shift = kMostTimeShift;
  const auto factor = [&] { return ns_per_tick * static_cast<double>(std::uint64_t{1} << clock.time_shift); };
  while (clock.time_shift > 0 && factor() >= kEnd) --clock.time_shift;
  clock.time_mult = static_cast<std::uint32_t>(std::clamp(factor(), 1.0, kEnd - 1));
}

TscCalibration::TscCalibration() {
  const Sample first = sample();
  first_tsc_ = first.tsc;
  first_ns_ = first.ns;
  while (sample().ns - first_ns_ < kFirstMeasureNs) {
  }
}

void TscCalibration::calibrate(trace::Clock& clock) const {
  const Sample last = sample();
  const double ns = static_cast<double>(std::max<std::uint64_t>(last.ns - first_ns_, 1));
  const double ticks = static_cast<double>(std::max<std::uint64_t>(last.tsc - first_tsc_, 1));
  clock.tsc_hz = static_cast<std::uint64_t>(ticks / ns * static_cast<double>(trace::kNsPerSecond));
  set_rate(clock, ns / ticks);
  clock.time_zero = 0;
  clock.time_zero = last.ns - trace::perf_ns_from_tsc(clock, last.tsc);
  clock.perf_time_known = true;
}

}  // namespace ptkit::capture
