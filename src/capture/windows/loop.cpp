#include "capture/windows/loop.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kFlushMs = 1000;
constexpr std::uint64_t kProgressMs = 250;

}  // namespace

WindowsSession::Problem WindowsLoop::handle(LoopEvent event) {
  switch (event) {
    case LoopEvent::STOP:
      interrupted_ = ended_ = true;
      return {};
    case LoopEvent::DETACH:
    case LoopEvent::PROCESS_ENDED:
      ended_ = true;
      return {};
    case LoopEvent::SNAPSHOT:
      return session_->snapshot();
    case LoopEvent::PAUSE:
      return session_->pause();
    case LoopEvent::RESUME:
      return session_->resume();
    case LoopEvent::NOTHING:
      return {};
  }
  return {};
}

void WindowsLoop::look_at_clock() {
  const std::uint64_t now = host_->now_ms();
  if (now - flushed_ms_ >= kFlushMs) {
    session_->flush();
    flushed_ms_ = now;
  }
  if (now - shown_ms_ >= kProgressMs) {
    host_->progress(session_->trace_bytes());
    shown_ms_ = now;
  }
  if (!ended_ && limit_ms_ != 0 && now - begin_ms_ >= limit_ms_) ended_ = limited_ = true;
  if (session_->failed()) ended_ = true;
}

WindowsSession::Problem WindowsLoop::run() {
  while (!ended_) {
    auto event = host_->wait();
    if (!event.ok()) return event.failure();
    if (auto failure = handle(event.value())) return failure;
    if (auto failure = session_->drain()) return failure;
    look_at_clock();
  }
  return {};
}

}  // namespace ptkit::capture
