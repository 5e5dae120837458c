// The recorders of Linux.
#include "capture/linux/driver/recorder.h"
#include "capture/linux/emulator/emulator.h"
#include "capture/linux/perf/recorder.h"
#include "capture/linux/ptrace/recorder.h"

namespace ptkit::capture {

base::Result<std::unique_ptr<Recorder>> make_recorder(RecordOptions options) {
  using Made = std::unique_ptr<Recorder>;
  switch (options.backend) {
    case Backend::PERF:
      return Made(std::make_unique<PerfRecorder>(std::move(options)));
    case Backend::DRIVER:
      return Made(std::make_unique<DriverRecorder>(std::move(options)));
    case Backend::EMULATOR:
      return Made(std::make_unique<EmulatorRecorder>(std::move(options)));
    case Backend::STEP:
      break;
  }
  return Made(std::make_unique<StepRecorder>(std::move(options)));
}

}  // namespace ptkit::capture
