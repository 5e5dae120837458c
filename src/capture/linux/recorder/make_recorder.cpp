// The recorders of Linux.
#include "capture/linux/driver/backend.h"
#include "capture/linux/emulator/recorder.h"
#include "capture/linux/perf/backend.h"
#include "capture/linux/ptrace/recorder.h"
#include "capture/linux/session/recorder.h"

namespace ptkit::capture {

base::Result<std::unique_ptr<Recorder>> make_recorder(RecordOptions options) {
  using Made = std::unique_ptr<Recorder>;
  switch (options.backend) {
    case Backend::PERF:
      return Made(std::make_unique<HardwareRecorder>(Backend::PERF, std::move(options),
                                                     std::make_unique<PerfBackend>(&open_perf)));
    case Backend::DRIVER:
      return Made(std::make_unique<HardwareRecorder>(
          Backend::DRIVER, std::move(options), std::make_unique<DriverBackend>(&open_driver, open_perf())));
    case Backend::EMULATOR:
      return Made(std::make_unique<EmulatorRecorder>(std::move(options)));
    case Backend::STEP:
      break;
  }
  return Made(std::make_unique<StepRecorder>(std::move(options)));
}

}  // namespace ptkit::capture
