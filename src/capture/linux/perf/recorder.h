// The hardware recorder by Linux perf. docs/perf-backend.md describes the design.
#pragma once

#include <memory>
#include <utility>

#include "capture/linux/perf/backend.h"
#include "capture/linux/session/recorder.h"

namespace ptkit::capture {

class PerfRecorder : public HardwareRecorder {
 public:
  explicit PerfRecorder(RecordOptions options, OpenPerf open = &open_perf)
      : HardwareRecorder(Backend::PERF, std::move(options), std::make_unique<PerfBackend>(std::move(open))) {}
};

}  // namespace ptkit::capture
