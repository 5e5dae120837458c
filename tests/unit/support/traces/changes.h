// Code and threads that change while a trace is recorded.
#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "packet/errata.h"
#include "time/track.h"
#include "trace/bundle.h"

namespace ptkit::changes {

// Replaces code, and switches threads of several processes, at some times of the first stream.
inline void add_at_times(trace::TraceBundle& bundle, const packet::Errata& errata, std::mt19937_64& random) {
  trace::Stream& stream = bundle.streams[0];
  const base::Bytes bytes = stream.data.bytes();
  time::TimeTrack track(bytes, bundle.configuration.clock, errata);
  std::vector<std::uint64_t> times;
  for (std::uint64_t offset = random() % (bytes.size() / 4 + 1); offset < bytes.size();
       offset += 1 + random() % (bytes.size() / 8 + 1)) {
    const time::TimeRange range = track.at(offset, offset);
    if (range.known) times.push_back(range.tsc + random() % (std::uint64_t{range.error} + 2));
  }
  std::sort(times.begin(), times.end());
  bundle.spaces.resize(2);
  // User code alone, or an unknown privilege level.
  bundle.configuration.rtit_ctl_known = bundle.configuration.rtit_ctl_known || random() % 2 == 0;
  for (const std::uint64_t tsc : times) {
    if (random() % 2 == 0) {
      // The same code in both, or in one only.
      const trace::SpaceId space = random() % 8 == 0 ? 1 : random() % 2 == 0 ? 0 : trace::kAnySpace;
      stream.switches.push_back({tsc, 7, static_cast<std::int64_t>(random() % 3), space});
      continue;
    }
    trace::CodeRegion& region = bundle.code[random() % bundle.code.size()];
    if (tsc <= region.tsc_from || region.tsc_to <= tsc) continue;
    trace::CodeRegion later = region;
    region.tsc_to = later.tsc_from = tsc;
    if (random() % 3 == 0) {
      const base::Bytes old = region.bytes.bytes();
      std::vector<std::uint8_t> changed(old.begin(), old.end());
      if (!changed.empty()) changed[random() % changed.size()] = 0x90;
      later.bytes = trace::TraceBuffer::from_vector(std::move(changed));
    }
    bundle.code.push_back(std::move(later));
  }
}

}  // namespace ptkit::changes
