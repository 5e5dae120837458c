// What the packets of a stream say of switches: where page tables changed, and when. For .cpp files of this
// folder only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "formats/page_tables.h"
#include "trace/bundle.h"

namespace ptkit::formats {

inline constexpr std::uint64_t kNeverPlaced = ~std::uint64_t{0};

// Tracing had been off, and came on again with tables that nothing tells. The first CR3 that was written
// from then on is that of a change.
struct TablesAgain {
  std::size_t change = 0;  // its number; the one before is where tracing went off
  std::uint64_t on = 0;    // when it was on at the latest
};

struct SwitchSurvey {
  std::vector<TableChange> changes;  // the last one is the stream's end
  std::vector<TablesAgain> again;
  // Of each switch of the stream, where its time had come; kNeverPlaced: that is not in the stream.
  std::vector<std::uint64_t> places;
};

struct SurveyLimits {
  std::size_t changes = 0;                            // at most
  std::function<bool()> go_on = [] { return true; };  // asked every some megabytes
};

// Reads the stream once, some megabytes at a time. Empty if there are more changes, or if it was told not to
// go on.
[[nodiscard]] std::optional<SwitchSurvey> survey_switches(const trace::Stream& stream,
                                                          const trace::Configuration& configuration,
                                                          const SurveyLimits& limits);

}  // namespace ptkit::formats
