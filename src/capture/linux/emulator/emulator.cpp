#include "capture/linux/emulator/emulator.h"

#include "capture/linux/emulator/session.h"

namespace ptkit::capture {

EmulatorRecorder::EmulatorRecorder(RecordOptions options) {
  options.backend = Backend::EMULATOR;
  session_ = std::make_unique<Session>(std::move(options), requests_, progress_);
}
EmulatorRecorder::~EmulatorRecorder() = default;

base::Result<RecordResult> EmulatorRecorder::run() { return session_->run(); }

}  // namespace ptkit::capture
