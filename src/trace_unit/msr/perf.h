// Converts configurations to perf's intel_pt events and back. The bits of an event's config are those of
// IA32_RTIT_CTL that perf lets users set. The exception is bit 0, "pt": with it, bit 13 sets BranchEn;
// without it, BranchEn is always set.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "trace_unit/msr/config.h"

namespace ptkit::trace_unit::msr {

struct PerfEvent {
  std::uint64_t config = 0;
  bool user = true;    // !exclude_user
  bool kernel = true;  // !exclude_kernel

  bool operator==(const PerfEvent&) const = default;
};

// "intel_pt/tsc,mtc,mtc_period=3/u"
[[nodiscard]] std::string perf_text(const PerfEvent& event);
// Parses an event with or without intel_pt//. Terms modify `base`. BAD_CONFIG names the invalid term and its
// valid values.
[[nodiscard]] base::Result<PerfEvent> parse_perf(std::string_view text, const PerfEvent& base = {});

// The configuration that perf's driver uses for an event. BAD_CONFIG: a bit that users cannot set.
[[nodiscard]] base::Result<RtitConfig> config_of_perf(const PerfEvent& event);

struct PerfTranslation {
  PerfEvent event;
  std::vector<std::string> lost;  // fields that differ in perf's configuration for the event
};
[[nodiscard]] PerfTranslation perf_of(const RtitConfig& config);

}  // namespace ptkit::trace_unit::msr
