// The hardware recorder by ptkit's kernel driver.
#pragma once

#include <memory>
#include <utility>

#include "capture/linux/driver/backend.h"
#include "capture/linux/session/recorder.h"

namespace ptkit::capture {

class DriverRecorder : public HardwareRecorder {
 public:
  explicit DriverRecorder(RecordOptions options, OpenDriver open = &open_driver,
                          const OpenPerf& perf = &open_perf)
      : HardwareRecorder(Backend::DRIVER, std::move(options),
                         std::make_unique<DriverBackend>(std::move(open), perf())) {}
};

}  // namespace ptkit::capture
