#include "capture/linux/emulator/emulator.h"

#include "capture/linux/emulator/session.h"

namespace ptkit::capture {

EmulatorRecorder::EmulatorRecorder(RecordOptions options)
    : session_(std::make_unique<Session>(std::move(options))) {}
EmulatorRecorder::~EmulatorRecorder() = default;

base::Result<RecordResult> EmulatorRecorder::run() { return session_->run(); }
void EmulatorRecorder::request_stop() noexcept { session_->request_stop(); }
void EmulatorRecorder::request_detach() noexcept { session_->request_detach(); }
void EmulatorRecorder::request_snapshot() noexcept { session_->request_snapshot(); }
void EmulatorRecorder::pause() noexcept { session_->pause(true); }
void EmulatorRecorder::resume() noexcept { session_->pause(false); }
RecordProgress EmulatorRecorder::progress() const noexcept { return session_->progress(); }
int EmulatorRecorder::pid() const noexcept { return session_->pid(); }

}  // namespace ptkit::capture
