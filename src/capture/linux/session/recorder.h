// Records with the processor's trace unit: a program, a running process, or all processes of some CPUs.
// docs/driver-backend.md and docs/perf-backend.md describe the design.
#pragma once

#include <memory>

#include "capture/common/requests.h"
#include "capture/linux/session/backend.h"

namespace ptkit::capture {

class HardwareRecorder : public RequestedRecorder {
 public:
  HardwareRecorder(Backend name, RecordOptions options, std::unique_ptr<HardwareBackend> backend);
  ~HardwareRecorder() override;

  [[nodiscard]] base::Result<RecordResult> run() override;

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace ptkit::capture
