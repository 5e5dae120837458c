// Parses context switches from raw perf records, which LLDB's bundles have for each CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "trace/bundle.h"

namespace ptkit::formats {

// One PERF_RECORD_SWITCH_CPU_WIDE: the thread that is switched in or out.
struct PerfSwitch {
  bool out = false;
  trace::Departure departure = trace::Departure::UNKNOWN;  // with `out`
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time_ns = 0;
};

struct PerfSwitches {
  std::vector<PerfSwitch> records;              // in file order
  std::optional<std::uint64_t> damaged_offset;  // offset of the first malformed record
};

[[nodiscard]] PerfSwitches read_perf_switches(base::Bytes records);

}  // namespace ptkit::formats
