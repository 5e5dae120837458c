// Layout of the tracepoint sched:sched_switch, by HEADER_TRACING_DATA (tools/perf/util/trace-event-info.c).
// For .cpp files of this folder only.
#pragma once

#include <optional>

#include "formats/perf_event/sample.h"

namespace ptkit::formats::perf {

struct SchedSwitch {
  std::uint64_t event = 0;  // tracepoint ID: Attr::config
  std::size_t next_tid_at = 0;
};

// Returns nothing if the tracepoint was not recorded.
[[nodiscard]] std::optional<SchedSwitch> find_sched_switch(base::Bytes tracing_data);

}  // namespace ptkit::formats::perf
