// Surveys the PIP packets of a stream: offsets and times of changes of CR3. For .cpp files of this folder
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sideband/page_tables.h"
#include "trace/bundle.h"

namespace ptkit::sideband {

inline constexpr std::uint64_t kNotInStream = ~std::uint64_t{0};

// Tracing was off, and came on again with a CR3 that no packet reports. The first PIP after that is a change.
struct UnreportedResume {
  std::size_t change = 0;  // index of the change; the change before is the TIP.PGD
  std::uint64_t on = 0;    // tracing was on at this TSC at the latest
};

struct SwitchSurvey {
  std::vector<Cr3Change> changes;  // the last one is the stream's end
  std::vector<UnreportedResume> resumes;
  // By switch: the first offset with a time not before the switch; kNotInStream: the stream ends before.
  std::vector<std::uint64_t> offsets;
};

struct SurveyLimits {
  std::size_t changes = 0;                            // the maximum
  std::function<bool()> go_on = [] { return true; };  // called for each window
};

// Reads the stream once, some megabytes at a time. Returns nothing if there are more than `limits.changes`
// changes, or if `limits.go_on` returns false.
[[nodiscard]] std::optional<SwitchSurvey> survey_switches(const trace::Stream& stream,
                                                          const trace::Configuration& configuration,
                                                          const SurveyLimits& limits);

}  // namespace ptkit::sideband
