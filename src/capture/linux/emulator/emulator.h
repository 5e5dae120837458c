// The recorder for machines without Processor Trace. It runs a program in QEMU's user mode emulation. A QEMU
// plugin (src/capture/linux/emulator/plugin) reports the executed blocks, and the recorder encodes them as
// Processor Trace. The recorder follows threads, children and exec(). It writes a .ptk bundle.
// docs/emulator.md has the design.
#pragma once

#include <memory>

#include "capture/common/requests.h"

namespace ptkit::capture {

class EmulatorRecorder final : public RequestedRecorder {
 public:
  explicit EmulatorRecorder(RecordOptions options);
  ~EmulatorRecorder() override;

  [[nodiscard]] base::Result<RecordResult> run() override;

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace ptkit::capture
