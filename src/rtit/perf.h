// How perf's intel_pt events say the same. The bits of their config are those of IA32_RTIT_CTL that perf lets
// users set, save bit 0, "pt": BranchEn is as bit 13 says; without it BranchEn is always set.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rtit/config.h"

namespace ptkit::rtit {

struct PerfEvent {
  std::uint64_t config = 0;
  bool user = true;    // !exclude_user
  bool kernel = true;  // !exclude_kernel

  bool operator==(const PerfEvent&) const = default;
};

// "intel_pt/tsc,mtc,mtc_period=3/u"
[[nodiscard]] std::string perf_text(const PerfEvent& event);
// The same, with or without intel_pt//; BAD_CONFIG names the term and what it may be.
// Terms change what `base` says.
[[nodiscard]] base::Result<PerfEvent> parse_perf(std::string_view text, const PerfEvent& base = {});

// What perf's driver makes of an event. BAD_CONFIG: a bit that it does not let users set.
[[nodiscard]] base::Result<RtitConfig> config_of_perf(const PerfEvent& event);

struct PerfTranslation {
  PerfEvent event;
  std::vector<std::string> lost;  // fields that differ in what perf makes of the event
};
[[nodiscard]] PerfTranslation perf_of(const RtitConfig& config);

}  // namespace ptkit::rtit
