// perf events that record branches without packets: intel_bts, and samples with branch stacks (LBR).
#pragma once

#include <optional>
#include <vector>

#include "capture/linux/perf/config.h"

namespace ptkit::capture {

// The attributes of the event of a recording. Fails as perf_event().
[[nodiscard]] base::Result<perf_event_attr> branch_event(const RecordOptions& options, const PerfPort& port);
// CPUs of one core type of a hybrid processor (P and E cores). The kernel has a PMU for each type.
struct CoreKind {
  std::uint32_t type = 0;  // of the PMU
  std::vector<std::uint32_t> cpus;
};
[[nodiscard]] std::vector<CoreKind> core_kinds(const PerfPort& port);
// `attr` for the core type of a CPU, or for all core types of a thread (`cpu` -1).
[[nodiscard]] std::vector<perf_event_attr> events_on(const perf_event_attr& attr,
                                                     const std::vector<CoreKind>& kinds, int cpu);
// The error of perf_event_open(), if it differs from intel_pt's.
[[nodiscard]] std::optional<PerfError> branch_error(const PerfPort& port, const PerfScope& scope, int error);

// For `doctor`.
[[nodiscard]] PerfSupport bts_support(PerfPort& port);
[[nodiscard]] PerfSupport lbr_support(PerfPort& port);

}  // namespace ptkit::capture
