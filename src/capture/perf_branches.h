// Events of perf that tell of branches without packets: intel_bts, and samples with branch stacks (LBR).
#pragma once

#include <optional>
#include <vector>

#include "capture/perf_config.h"

namespace ptkit::capture {

// The event of a recording of them, before it is opened. Fails as perf_event().
[[nodiscard]] base::Result<perf_event_attr> branch_event(const RecordOptions& options, const PerfPort& port);
// Processors of one kind, where there are several: P and E cores. The kernel counts cycles of each by a PMU
// of their own.
struct CoreKind {
  std::uint32_t type = 0;  // of the PMU
  std::vector<std::uint32_t> cpus;
};
[[nodiscard]] std::vector<CoreKind> core_kinds(const PerfPort& port);
// The event of `attr` on a processor, or those of a thread wherever it runs (-1).
[[nodiscard]] std::vector<perf_event_attr> events_on(const perf_event_attr& attr,
                                                     const std::vector<CoreKind>& kinds, int cpu);
// How perf_event_open() refused it, where that is said otherwise than of intel_pt.
[[nodiscard]] std::optional<PerfRefusal> branch_refusal(const PerfPort& port, const PerfScope& scope,
                                                        int error);

// For `doctor`.
[[nodiscard]] PerfState store_state(PerfPort& port);
[[nodiscard]] PerfState stacks_state(PerfPort& port);

}  // namespace ptkit::capture
