// The tracepoint sched:sched_switch, by the description of its fields that perf keeps
// (tools/perf/util/trace-event-info.c). For .cpp files of this folder only.
#pragma once

#include <optional>

#include "formats/perf_sample.h"

namespace ptkit::formats::perf {

struct SchedSwitch {
  std::uint64_t event = 0;  // its number: config of its attributes
  std::size_t next_tid_at = 0;
};

// Empty: tracepoints were not recorded, or not this one.
[[nodiscard]] std::optional<SchedSwitch> find_sched_switch(base::Bytes tracing_data);

}  // namespace ptkit::formats::perf
