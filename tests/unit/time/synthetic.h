// A program's clocks and the timing packets for them: every position in the stream has its actual time.
// Written against the manual alone (without softpt), so that generator and estimator cannot share a mistake.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::time::test {

struct SyntheticConfig {
  std::uint64_t seed = 1;
  std::uint64_t branches = 40'000;
  std::uint64_t start_tsc = 1'000'000'007;
  std::uint32_t numerator = 168;
  std::uint32_t denominator = 2;
  unsigned mtc_period = 3;
  bool mtc = true;
  bool cyc = false;
  unsigned cyc_threshold = 0;   // cycles
  bool floor_each_cyc = false;  // CYC rounds each difference down, instead of the counter
  // a CYC before a TNT has the time of its first branch (manual), else of the packet
  bool first_branch = false;
  std::uint64_t psb_bytes = 4096;
  std::uint8_t max_nonturbo_ratio = 24;
  double cycles_per_branch = 12;
  double ratio_changes = 1.0 / 2000;  // per branch, 8..35
  double ratio_lag = 0;               // ticks by which CBR comes late
  double halts = 0;                   // per branch: the core clock stops, MTC continues
  double sleeps = 0;                  // per branch: no packets at all
  bool wake_tsc = true;               // TSC and TMA after a sleep
  double sleep_ticks = 20'000;        // mean
  double mtc_loss = 0;                // probability of an MTC to be dropped
  double overflows = 0;               // per branch: packets of some 3000 ticks are lost
  std::uint8_t only_ratio = 0;        // if set: no other CBR
};

// Something that happened at `tsc`, not before the packet at `since` and not after the packet at `offset`.
struct Truth {
  std::uint64_t since = 0;
  std::uint64_t offset = 0;
  std::uint64_t tsc = 0;
};

struct SyntheticTrace {
  std::vector<std::uint8_t> bytes;
  std::vector<Truth> branches;
  std::vector<Truth> packets;  // since == offset
  trace::Clock clock;
};

[[nodiscard]] SyntheticTrace synthesize(const SyntheticConfig& config);

// Median and 99th percentile.
struct Spread {
  double median = 0;
  double p99 = 0;
};
[[nodiscard]] Spread spread_of(std::vector<double> values);

}  // namespace ptkit::time::test
