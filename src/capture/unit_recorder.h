// The recorder that has the processor itself trace: a program, a process that runs already, or all that runs
// on some processors. docs/driver-backend.md and docs/perf-backend.md have the design.
#pragma once

#include <memory>

#include "base/status.h"
#include "capture/record_options.h"
#include "capture/trace_units.h"

namespace ptkit::capture {

class UnitRecorder {
 public:
  UnitRecorder(RecordOptions options, std::unique_ptr<TraceUnits> units);
  ~UnitRecorder();
  UnitRecorder(const UnitRecorder&) = delete;
  UnitRecorder& operator=(const UnitRecorder&) = delete;

  // Blocks until the program and all that it started have ended, time is up, or a stop was asked for.
  [[nodiscard]] base::Result<RecordResult> run();

  // From any thread, while run() runs.
  void request_stop() noexcept;    // ends the recording: SIGINT for a program that it started, later SIGKILL
  void request_detach() noexcept;  // ends the recording; what is recorded runs on
  void request_snapshot() noexcept;  // ring mode: keeps what is in the rings
  void pause() noexcept;             // traces nothing until resume()
  void resume() noexcept;
  [[nodiscard]] RecordProgress progress() const noexcept;
  [[nodiscard]] int pid() const noexcept;       // of the process; 0: none, or not started
  [[nodiscard]] bool started() const noexcept;  // tracing is on

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace ptkit::capture
