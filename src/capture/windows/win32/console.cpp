#include "capture/windows/win32/console.h"

#include <atomic>
#include <cstdio>

#include "capture/common/errors.h"
#include "capture/windows/win32/wide.h"

namespace ptkit::capture::win32 {

namespace {

constexpr DWORD kMostClosingMs = 4500;  // Windows ends a process 5 s after CTRL_CLOSE_EVENT

// Objects that the handler of control events signals and waits for. Windows calls it on a thread of its own.
struct Events {
  std::atomic<Requests*> requests{nullptr};
  std::atomic<HANDLE> finished{nullptr};
};
Events g_events;

BOOL WINAPI on_control(DWORD event) {
  Requests* const requests = g_events.requests;
  if (requests == nullptr) return FALSE;
  if (event == CTRL_BREAK_EVENT) {
    requests->snapshot();
    return TRUE;
  }
  requests->stop();
  // The process ends when this returns.
  if (event != CTRL_C_EVENT) ::WaitForSingleObject(g_events.finished, kMostClosingMs);
  return TRUE;
}

std::wstring snapshot_name(std::uint32_t pid) { return L"Local\\ptkit-snapshot-" + std::to_wstring(pid); }

}  // namespace

Console::Console(bool quiet)
    : requests_(snapshot_name(::GetCurrentProcessId())),
      finished_(::CreateEventW(nullptr, TRUE, FALSE, nullptr)),
      quiet_(quiet) {
  g_events.finished = finished_.get();
  g_events.requests = &requests_;
  ::SetConsoleCtrlHandler(on_control, TRUE);
}

Console::~Console() {
  ::SetEvent(finished_.get());
  ::SetConsoleCtrlHandler(on_control, FALSE);
  g_events.requests = nullptr;
}

void Console::progress(std::uint64_t trace_bytes) {
  if (quiet_ || ::GetFileType(::GetStdHandle(STD_ERROR_HANDLE)) != FILE_TYPE_CHAR) return;
  constexpr double kMega = 1e6;
  std::fprintf(stderr, "\rptkit-capture: %.1f MB of trace ", static_cast<double>(trace_bytes) / kMega);
  line_ = true;
}

void Console::say(const std::string& text) {
  if (quiet_) return;
  std::fprintf(stderr, "%sptkit-capture: %s\n", line_ ? "\n" : "", text.c_str());
  line_ = false;
}

std::optional<base::Failure> ask_for_snapshot(std::uint32_t pid) {
  const Handle event(::OpenEventW(EVENT_MODIFY_STATE, FALSE, snapshot_name(pid).c_str()));
  if (event && ::SetEvent(event.get()) != 0) return std::nullopt;
  return capture::invalid_option(
      "snapshot: process " + std::to_string(pid) +
      " is no recorder of this session of Windows; give the number of ptkit-capture");
}

}  // namespace ptkit::capture::win32
