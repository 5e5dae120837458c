// A timeline of calls as Python and exporters hold it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "tables/calls/timeline/frame_timeline.h"

namespace ptkit::api::python {

inline constexpr const char* kTimelineInUse = "another thread uses this timeline";

struct TimelineHandle {
  explicit TimelineHandle(std::unique_ptr<tables::calls::FrameTimeline> of) : timeline(std::move(of)) {}

  std::unique_ptr<tables::calls::FrameTimeline> timeline;
  std::uint64_t reductions = 0;  // each makes readers invalid
  std::atomic<bool> busy{false};
};

}  // namespace ptkit::api::python
