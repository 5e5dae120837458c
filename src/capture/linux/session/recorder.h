// Records with the processor's trace unit: a program, a running process, or all processes of some CPUs.
// docs/driver-backend.md and docs/perf-backend.md describe the design.
#pragma once

#include <memory>

#include "base/status.h"
#include "capture/common/record_options.h"
#include "capture/linux/session/backend.h"

namespace ptkit::capture {

class HardwareRecorder {
 public:
  HardwareRecorder(RecordOptions options, std::unique_ptr<HardwareBackend> backend);
  ~HardwareRecorder();
  HardwareRecorder(const HardwareRecorder&) = delete;
  HardwareRecorder& operator=(const HardwareRecorder&) = delete;

  // Blocks until the program and its children have exited, the time limit is reached, or a stop is requested.
  [[nodiscard]] base::Result<RecordResult> run();

  // Any thread may call these while run() runs.
  // Ends the recording. A launched program gets SIGINT, and SIGKILL after kExitTime.
  void request_stop() noexcept;
  // Ends the recording. The recorded process continues.
  void request_detach() noexcept;
  // Ring mode: writes the contents of the rings to the bundle.
  void request_snapshot() noexcept;
  // Stops tracing until resume().
  void pause() noexcept;
  void resume() noexcept;
  [[nodiscard]] RecordProgress progress() const noexcept;
  // The recorded process; 0: none, or not started yet.
  [[nodiscard]] int pid() const noexcept;
  // Whether tracing has begun.
  [[nodiscard]] bool started() const noexcept;

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace ptkit::capture
