// The recorder that has the processor trace by Linux perf. docs/perf-backend.md has the design.
#pragma once

#include <memory>
#include <utility>

#include "capture/perf_units.h"
#include "capture/unit_recorder.h"

namespace ptkit::capture {

class PerfRecorder : public UnitRecorder {
 public:
  explicit PerfRecorder(RecordOptions options, OpenPerf open = &open_perf)
      : UnitRecorder(std::move(options), std::make_unique<PerfUnits>(std::move(open))) {}
};

}  // namespace ptkit::capture
