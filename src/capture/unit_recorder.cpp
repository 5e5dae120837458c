#include "capture/unit_recorder.h"

#include "capture/unit_session.h"

namespace ptkit::capture {

UnitRecorder::UnitRecorder(RecordOptions options, std::unique_ptr<TraceUnits> units)
    : session_(std::make_unique<Session>(std::move(options), std::move(units))) {}
UnitRecorder::~UnitRecorder() = default;

base::Result<RecordResult> UnitRecorder::run() { return session_->run(); }
void UnitRecorder::request_stop() noexcept { session_->request_stop(); }
void UnitRecorder::request_detach() noexcept { session_->request_detach(); }
void UnitRecorder::request_snapshot() noexcept { session_->request_snapshot(); }
void UnitRecorder::pause() noexcept { session_->pause(true); }
void UnitRecorder::resume() noexcept { session_->pause(false); }
RecordProgress UnitRecorder::progress() const noexcept { return session_->progress(); }
int UnitRecorder::pid() const noexcept { return session_->pid(); }
bool UnitRecorder::started() const noexcept { return session_->started(); }

}  // namespace ptkit::capture
