// SAMPLE records by sample_type of their event (include/uapi/linux/perf_event.h), and the layout of the
// tracepoint sched:sched_switch, by HEADER_TRACING_DATA (tools/perf/util/trace-event-info.c). For .cpp files
// of this folder only.
#pragma once

#include <optional>

#include "formats/perf_event/record.h"

namespace ptkit::formats::perf {

// The used fields of a sample. Byte ranges are views of the record.
struct Sample {
  Trailer trailer;
  std::uint64_t ip = 0;
  std::uint64_t address = 0;
  std::uint64_t period = 0;
  bool is_32_bit = false;  // user code, by PERF_SAMPLE_REGS_ABI_32
  base::Bytes raw;         // PERF_SAMPLE_RAW: fields of a tracepoint
  base::Bytes branches;    // the branch stack: trace::kBranchEntryBytes each, the newest first
  base::Bytes trace;       // PERF_SAMPLE_AUX
};

// Returns nothing if the record is too short for its attributes.
[[nodiscard]] std::optional<Sample> parse_sample(const Attr& attr, base::Bytes body);

struct SchedSwitch {
  std::uint64_t event = 0;  // tracepoint ID: Attr::config
  std::size_t next_tid_at = 0;
};

// Returns nothing if the tracepoint was not recorded.
[[nodiscard]] std::optional<SchedSwitch> find_sched_switch(base::Bytes tracing_data);

}  // namespace ptkit::formats::perf
