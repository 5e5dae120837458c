// Context switches from raw perf records, as LLDB's bundles carry them per CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "trace/bundle.h"

namespace ptkit::formats {

// One PERF_RECORD_SWITCH_CPU_WIDE: the thread that comes in, or that goes out.
struct PerfSwitch {
  bool out = false;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time_ns = 0;
};

struct PerfSwitches {
  std::vector<PerfSwitch> records;              // in file order
  std::optional<std::uint64_t> damaged_offset;  // where the records stop making sense
};

[[nodiscard]] PerfSwitches read_perf_switches(base::Bytes records);

}  // namespace ptkit::formats
