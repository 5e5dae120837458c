// Events of perf that tell of branches without packets: intel_bts, and samples with branch stacks (LBR).
#pragma once

#include <optional>

#include "capture/perf_config.h"

namespace ptkit::capture {

// The event of a recording of them, before it is opened. Fails as perf_event().
[[nodiscard]] base::Result<perf_event_attr> branch_event(const RecordOptions& options, const PerfPort& port);
// How perf_event_open() refused it, where that is said otherwise than of intel_pt.
[[nodiscard]] std::optional<PerfRefusal> branch_refusal(const PerfPort& port, const PerfScope& scope,
                                                        int error);

// For `doctor`.
[[nodiscard]] PerfState store_state(PerfPort& port);
[[nodiscard]] PerfState stacks_state(PerfPort& port);

}  // namespace ptkit::capture
