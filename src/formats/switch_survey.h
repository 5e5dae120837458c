// What the packets of a stream say of switches: where page tables changed, and when. For .cpp files of this
// folder only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/page_tables.h"
#include "trace/bundle.h"

namespace ptkit::formats {

inline constexpr std::uint64_t kNeverPlaced = ~std::uint64_t{0};

struct SwitchSurvey {
  std::vector<TableChange> changes;  // the last one is the stream's end
  // Of each switch of the stream, where its time had come; kNeverPlaced: that is not in the stream.
  std::vector<std::uint64_t> places;
};

// Empty if there are more changes than `most`.
[[nodiscard]] std::optional<SwitchSurvey> survey_switches(const trace::Stream& stream,
                                                          const trace::Configuration& configuration,
                                                          std::size_t most);

}  // namespace ptkit::formats
