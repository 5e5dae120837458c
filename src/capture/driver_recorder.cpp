#include "capture/driver_recorder.h"

#include "capture/driver_session.h"

namespace ptkit::capture {

DriverRecorder::DriverRecorder(RecordOptions options, OpenDriver open)
    : session_(std::make_unique<Session>(std::move(options), std::move(open))) {}
DriverRecorder::~DriverRecorder() = default;

base::Result<RecordResult> DriverRecorder::run() { return session_->run(); }
void DriverRecorder::request_stop() noexcept { session_->request_stop(); }
void DriverRecorder::request_detach() noexcept { session_->request_detach(); }
void DriverRecorder::request_snapshot() noexcept { session_->request_snapshot(); }
void DriverRecorder::pause() noexcept { session_->pause(true); }
void DriverRecorder::resume() noexcept { session_->pause(false); }
RecordProgress DriverRecorder::progress() const noexcept { return session_->progress(); }
int DriverRecorder::pid() const noexcept { return session_->pid(); }
bool DriverRecorder::started() const noexcept { return session_->started(); }

}  // namespace ptkit::capture
