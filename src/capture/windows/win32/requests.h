// Requests to a recording that runs: any thread may make them, the recording's own thread waits.
#pragma once

#include <windows.h>

#include <array>
#include <atomic>
#include <string>

#include "capture/windows/loop.h"
#include "capture/windows/win32/handle.h"

namespace ptkit::capture::win32 {

class Requests {
 public:
  // `snapshot_name`: of the event by which other processes request a snapshot; empty: it has none.
  explicit Requests(const std::wstring& snapshot_name = {});

  void stop() noexcept { ::SetEvent(stop_.get()); }
  void detach() noexcept { ::SetEvent(detach_.get()); }
  void snapshot() noexcept { ::SetEvent(snapshot_.get()); }
  void set_paused(bool paused) noexcept;

  // Signalled by a request. That of stop and that of detach stay signalled.
  static constexpr std::size_t kHandles = 4;
  [[nodiscard]] std::array<HANDLE, kHandles> handles() const noexcept;
  // Event of the request with this number, the handle of which was signalled.
  [[nodiscard]] capture::LoopEvent event(std::size_t number) const noexcept;
  [[nodiscard]] HANDLE stop_handle() const noexcept { return stop_.get(); }

 private:
  Handle stop_;
  Handle detach_;
  Handle snapshot_;
  Handle pause_changed_;
  std::atomic<bool> paused_{false};
};

}  // namespace ptkit::capture::win32
