#include "capture/linux/session/recorder.h"

#include "capture/linux/session/session.h"

namespace ptkit::capture {

HardwareRecorder::HardwareRecorder(Backend name, RecordOptions options,
                                   std::unique_ptr<HardwareBackend> backend) {
  options.backend = name;
  session_ = std::make_unique<Session>(std::move(options), std::move(backend), requests_, progress_);
}
HardwareRecorder::~HardwareRecorder() = default;

base::Result<RecordResult> HardwareRecorder::run() { return session_->run(); }

}  // namespace ptkit::capture
