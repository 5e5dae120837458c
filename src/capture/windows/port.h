// Access to the Windows driver: one open handle is one session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "capture/windows/requests.h"

namespace ptkit::capture {

// Tests implement a fake device.
class WindowsPort {
 public:
  virtual ~WindowsPort() = default;
  // DeviceIoControl(). Returns 0, or the error of Windows. `written`: how many bytes of `out` are the answer.
  [[nodiscard]] virtual std::uint32_t request(std::uint32_t code, base::Bytes in, std::span<std::uint8_t> out,
                                              std::size_t& written) = 0;
};

// Bytes of a structure, for `in` and `out` of a request.
template <typename T>
[[nodiscard]] base::Bytes bytes_of(const T& value) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}
template <typename T>
[[nodiscard]] std::span<std::uint8_t> room_of(T& value) noexcept {
  return {reinterpret_cast<std::uint8_t*>(&value), sizeof value};
}

// A request with one structure, which the answer replaces. An answer that is too short is an error, too.
template <typename T>
[[nodiscard]] std::uint32_t exchange(WindowsPort& port, std::uint32_t code, T& value) {
  constexpr std::uint32_t kBadLength = 24;  // ERROR_BAD_LENGTH
  std::size_t written = 0;
  T answer = value;
  const std::uint32_t error = port.request(code, bytes_of(value), room_of(answer), written);
  if (error != 0) return error;
  if (written < sizeof value) return kBadLength;
  value = answer;
  return 0;
}

// Capabilities of driver and processor. UNSUPPORTED: the driver's ABI has another version.
[[nodiscard]] base::Result<ptkit_windows_query> query_driver(WindowsPort& port);

// The driver's reason for its last refusal, with the remedy. `what` was to be done; `error` is that of
// Windows, for drivers that give no reason.
[[nodiscard]] base::Failure refused_by(WindowsPort& port, const char* what, std::uint32_t error);

}  // namespace ptkit::capture
