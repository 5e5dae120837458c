#include "capture/windows/win32/requests.h"

namespace ptkit::capture::win32 {

namespace {

Handle new_event(bool stays, const wchar_t* name = nullptr) {
  return Handle(::CreateEventW(nullptr, stays ? TRUE : FALSE, FALSE, name));
}

}  // namespace

Requests::Requests(const std::wstring& snapshot_name)
    : stop_(new_event(true)),
      detach_(new_event(true)),
      snapshot_(new_event(false, snapshot_name.empty() ? nullptr : snapshot_name.c_str())),
      pause_changed_(new_event(false)) {}

void Requests::set_paused(bool paused) noexcept {
  paused_ = paused;
  ::SetEvent(pause_changed_.get());
}

std::array<HANDLE, Requests::kHandles> Requests::handles() const noexcept {
  return {stop_.get(), detach_.get(), snapshot_.get(), pause_changed_.get()};
}

capture::LoopEvent Requests::event(std::size_t number) const noexcept {
  using Event = capture::LoopEvent;
  switch (number) {
    case 0:
      return Event::STOP;
    case 1:
      return Event::DETACH;
    case 2:
      return Event::SNAPSHOT;
    default:
      return paused_ ? Event::PAUSE : Event::RESUME;
  }
}

}  // namespace ptkit::capture::win32
