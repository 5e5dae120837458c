// The device of the driver. Closing it ends the session: so does the end of this process.
#pragma once

#include <windows.h>

#include <memory>

#include "base/status.h"
#include "capture/windows/port.h"
#include "capture/windows/win32/handle.h"

namespace ptkit::capture::win32 {

class Device final : public capture::WindowsPort {
 public:
  // UNSUPPORTED has the cause and the remedy.
  [[nodiscard]] static base::Result<std::unique_ptr<Device>> open();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() override;

  [[nodiscard]] std::uint32_t request(std::uint32_t code, base::Bytes in, std::span<std::uint8_t> out,
                                      std::size_t& written) override;

  // Begins PTKIT_WINDOWS_WAIT if none is pending. happened() is signalled when it ends.
  void begin_wait();
  [[nodiscard]] HANDLE happened() const noexcept { return happened_.get(); }
  // PTKIT_EVENT_* of the wait that has ended; 0: it is pending, or failed.
  [[nodiscard]] std::uint32_t end_wait();

 private:
  Device(Handle file, Handle done, Handle happened);

  Handle file_;
  Handle done_;      // of a request
  Handle happened_;  // of the wait
  OVERLAPPED waiting_{};
  ptkit_windows_wait answer_{};
  bool pending_ = false;
};

}  // namespace ptkit::capture::win32
