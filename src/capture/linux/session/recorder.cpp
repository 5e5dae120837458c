#include "capture/linux/session/recorder.h"

#include "capture/linux/session/session.h"

namespace ptkit::capture {

HardwareRecorder::HardwareRecorder(RecordOptions options, std::unique_ptr<HardwareBackend> backend)
    : session_(std::make_unique<Session>(std::move(options), std::move(backend))) {}
HardwareRecorder::~HardwareRecorder() = default;

base::Result<RecordResult> HardwareRecorder::run() { return session_->run(); }
void HardwareRecorder::request_stop() noexcept { session_->request_stop(); }
void HardwareRecorder::request_detach() noexcept { session_->request_detach(); }
void HardwareRecorder::request_snapshot() noexcept { session_->request_snapshot(); }
void HardwareRecorder::pause() noexcept { session_->pause(true); }
void HardwareRecorder::resume() noexcept { session_->pause(false); }
RecordProgress HardwareRecorder::progress() const noexcept { return session_->progress(); }
int HardwareRecorder::pid() const noexcept { return session_->pid(); }
bool HardwareRecorder::started() const noexcept { return session_->started(); }

}  // namespace ptkit::capture
