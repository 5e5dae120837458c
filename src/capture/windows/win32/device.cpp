#include "capture/windows/win32/device.h"

#include <utility>

#include "capture/common/errors.h"
#include "capture/windows/win32/wide.h"

namespace ptkit::capture::win32 {

namespace {

base::Failure cannot_open() {
  switch (::GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
      return capture::unsupported(
          "the driver ptkit.sys is not loaded; install it, then `sc start ptkit` as an administrator "
          "(docs/windows-driver.md)");
    case ERROR_ACCESS_DENIED:
      return capture::unsupported(
          "the driver is for administrators only; run this in a console that was started as an "
          "administrator");
    default:
      return last_failure("open the driver's device");
  }
}

Handle new_event() { return Handle(::CreateEventW(nullptr, TRUE, FALSE, nullptr)); }

}  // namespace

Device::Device(Handle file, Handle done, Handle happened)
    : file_(std::move(file)), done_(std::move(done)), happened_(std::move(happened)) {}

base::Result<std::unique_ptr<Device>> Device::open() {
  Handle file(::CreateFileA(PTKIT_WINDOWS_DEVICE, GENERIC_READ | GENERIC_WRITE, 0, nullptr, OPEN_EXISTING,
                            FILE_FLAG_OVERLAPPED, nullptr));
  if (!file) return cannot_open();
  Handle done = new_event();
  Handle happened = new_event();
  if (!done || !happened) return last_failure("create an event");
  return std::unique_ptr<Device>(new Device(std::move(file), std::move(done), std::move(happened)));
}

// The driver writes its answer to this object until the wait has ended.
Device::~Device() {
  DWORD ignored = 0;
  if (!pending_) return;
  ::CancelIoEx(file_.get(), &waiting_);
  ::GetOverlappedResult(file_.get(), &waiting_, &ignored, TRUE);
}

std::uint32_t Device::request(std::uint32_t code, base::Bytes in, std::span<std::uint8_t> out,
                              std::size_t& written) {
  OVERLAPPED state{};
  state.hEvent = done_.get();
  DWORD bytes = 0;
  written = 0;
  const BOOL at_once = ::DeviceIoControl(file_.get(), code, const_cast<std::uint8_t*>(in.data()),
                                         static_cast<DWORD>(in.size()), out.data(),
                                         static_cast<DWORD>(out.size()), nullptr, &state);
  if (at_once == 0 && ::GetLastError() != ERROR_IO_PENDING) return ::GetLastError();
  if (::GetOverlappedResult(file_.get(), &state, &bytes, TRUE) == 0) return ::GetLastError();
  written = bytes;
  return 0;
}

void Device::begin_wait() {
  if (pending_) return;
  waiting_ = {};
  waiting_.hEvent = happened_.get();
  ::ResetEvent(happened_.get());
  pending_ = ::DeviceIoControl(file_.get(), PTKIT_WINDOWS_WAIT, nullptr, 0, &answer_, sizeof answer_, nullptr,
                               &waiting_) != 0 ||
             ::GetLastError() == ERROR_IO_PENDING;
  if (!pending_) ::ResetEvent(happened_.get());
}

std::uint32_t Device::end_wait() {
  if (!pending_ || !HasOverlappedIoCompleted(&waiting_)) return 0;
  pending_ = false;
  ::ResetEvent(happened_.get());
  DWORD bytes = 0;
  const bool ended = ::GetOverlappedResult(file_.get(), &waiting_, &bytes, FALSE) != 0;
  return ended && bytes >= sizeof answer_ ? answer_.events : 0;
}

}  // namespace ptkit::capture::win32
