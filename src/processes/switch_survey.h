// Surveys the PIP packets of a stream: offsets and times of changes of CR3. For .cpp files of this folder
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "processes/page_tables.h"
#include "trace/bundle.h"

namespace ptkit::processes {

inline constexpr std::uint64_t kNotInStream = ~std::uint64_t{0};

// Tracing was off, and came on again with a CR3 that no packet reports. The first PIP after that is a change.
struct UnreportedResume {
  std::size_t change = 0;  // index of the change; the change before is the TIP.PGD
  std::uint64_t on = 0;    // tracing was on at this TSC at the latest
};

// User code from one kernel exit to the next kernel entry. It belongs to packets in (begin, end].
struct UserCode {
  std::uint64_t begin = 0;  // offset of the packet that enters user code
  std::uint64_t end = 0;    // offset of the packet that leaves it
  std::uint64_t tsc = 0;    // TSC at which user code begins at the earliest
  std::uint64_t until = 0;  // TSC at which user code ends at the latest
};

struct SwitchSurvey {
  std::vector<Cr3Change> changes;  // the last one is the stream's end
  std::vector<UnreportedResume> resumes;
  // By switch: the first offset with a time not before the switch; kNotInStream: the stream ends before.
  std::vector<std::uint64_t> offsets;
  // User code that contradicts `offsets`: a switch is in it, or the running task has no user code.
  std::vector<UserCode> user_code;
};

struct SurveyLimits {
  std::size_t changes = 0;                            // the maximum, of `changes` and of `user_code`
  std::function<bool()> go_on = [] { return true; };  // called for each window
};

// Reads the stream once, some megabytes at a time. `has_user_code`: by switch, whether its task has user
// code. Returns nothing if there are more changes than `limits.changes`, or if `limits.go_on` returns false.
[[nodiscard]] std::optional<SwitchSurvey> survey_switches(const trace::Stream& stream,
                                                          const trace::Configuration& configuration,
                                                          const std::vector<bool>& has_user_code,
                                                          const SurveyLimits& limits);

}  // namespace ptkit::processes
