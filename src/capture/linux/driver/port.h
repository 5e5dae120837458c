// Access to the kernel driver (kernel/include/ptkit/ptkit_ioctl.h): one open file is one session.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/bytes.h"
#include "base/status.h"
#include "ptkit/ptkit_ioctl.h"

namespace ptkit::capture {

// Tests implement a fake device.
class DriverPort {
 public:
  virtual ~DriverPort() = default;
  // ioctl(). Returns 0, or the errno.
  [[nodiscard]] virtual int request(unsigned long number, void* argument) = 0;
  // mmap() of a range that PTKIT_BUFFER returned, read-only. Empty: it failed. Valid as long as the port.
  [[nodiscard]] virtual base::Bytes map(std::uint64_t offset, std::uint64_t bytes) = 0;
  // The file descriptor for poll().
  [[nodiscard]] virtual int file() const = 0;
};

using OpenDriver = std::function<base::Result<std::unique_ptr<DriverPort>>()>;

// Opens /dev/ptkit. UNSUPPORTED has the cause and the remedy.
[[nodiscard]] base::Result<std::unique_ptr<DriverPort>> open_driver();

// Opens /dev/ptkit. Returns a port and `error` 0, or nothing and the errno.
[[nodiscard]] std::unique_ptr<DriverPort> try_driver(int& error);

// Capabilities of driver and processor. UNSUPPORTED: the driver's ABI has another version.
[[nodiscard]] base::Result<ptkit_query> query_driver(DriverPort& port);

}  // namespace ptkit::capture
