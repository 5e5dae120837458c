// The recorder for machines without Processor Trace. It runs a program in QEMU's user mode emulation. A QEMU
// plugin (src/capture/linux/emulator/plugin) reports the executed blocks, and the recorder encodes them as
// Processor Trace. The recorder follows threads, children and exec(). It writes a .ptk bundle.
// docs/emulator.md has the design.
#pragma once

#include <memory>

#include "base/status.h"
#include "capture/common/record_options.h"

namespace ptkit::capture {

class EmulatorRecorder {
 public:
  explicit EmulatorRecorder(RecordOptions options);
  ~EmulatorRecorder();

  // Blocks until the program and all its descendants have ended, or a stop was requested.
  [[nodiscard]] base::Result<RecordResult> run();

  // From any thread, while run() runs.
  void request_stop() noexcept;      // ends the recording: SIGINT for the program, SIGKILL some seconds later
  void request_detach() noexcept;    // ends the recording; the program runs on, and run() waits for it
  void request_snapshot() noexcept;  // ring mode: writes the ring to the bundle
  void pause() noexcept;             // records nothing until resume()
  void resume() noexcept;
  [[nodiscard]] RecordProgress progress() const noexcept;
  [[nodiscard]] int pid() const noexcept;  // of the program; 0: not started

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace ptkit::capture
