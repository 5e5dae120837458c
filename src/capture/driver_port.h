// The way to the kernel driver (kernel/include/ptkit/ptkit_ioctl.h): one open file is one session of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/bytes.h"
#include "base/status.h"
#include "ptkit/ptkit_ioctl.h"

namespace ptkit::capture {

// Tests put a device of their own behind it.
class DriverPort {
 public:
  virtual ~DriverPort() = default;
  // ioctl(): 0, or the errno.
  [[nodiscard]] virtual int request(unsigned long number, void* argument) = 0;
  // mmap() of what PTKIT_BUFFER says, for reading; empty if that fails. Good as long as the port.
  [[nodiscard]] virtual base::Bytes map(std::uint64_t offset, std::uint64_t bytes) = 0;
  // For poll().
  [[nodiscard]] virtual int file() const = 0;
};

using OpenDriver = std::function<base::Result<std::unique_ptr<DriverPort>>()>;

// /dev/ptkit. UNSUPPORTED says why it cannot be used, and what to do.
[[nodiscard]] base::Result<std::unique_ptr<DriverPort>> open_driver();

// The same, in numbers: nothing, and the errno in `error`; or a port, and 0.
[[nodiscard]] std::unique_ptr<DriverPort> try_driver(int& error);

// What the driver and the processor can do; UNSUPPORTED if they speak another language than we.
[[nodiscard]] base::Result<ptkit_query> query_driver(DriverPort& port);

}  // namespace ptkit::capture
