// Two ports by which the guest talks to the one who runs the machine (guest/host.c is the other side): bytes
// for a file, and orders.
#pragma once

#include <cstdint>
#include <cstdio>

#include "faults.h"

namespace ptkit::emulated {

class HostPort {
 public:
  enum class Order : std::uint8_t {
    NONE = 0,
    POWER_OFF = 1,
    LOG_NEVER = 2,
    LOG_WHILE_TRACING = 3,
    LOG_ALWAYS = 4,
    FAULT = 5,  // and the next ones: a value of Fault each
  };
  static constexpr unsigned kLastOrder = static_cast<unsigned>(Order::FAULT) + kFaults - 1;
  static constexpr unsigned kData = 0x4e8;
  static constexpr unsigned kOrders = 0x4ec;

  explicit HostPort(const char* path) : file_(path != nullptr ? std::fopen(path, "wb") : nullptr) {}
  ~HostPort() {
    if (file_ != nullptr) std::fclose(file_);
  }
  HostPort(const HostPort&) = delete;
  HostPort& operator=(const HostPort&) = delete;

  Order write(unsigned port, unsigned bytes, unsigned value) {
    if (port == kData && file_ != nullptr) std::fwrite(&value, bytes, 1, file_);
    if (port != kOrders || value > kLastOrder) return Order::NONE;
    if (value < static_cast<unsigned>(Order::FAULT)) return static_cast<Order>(value);
    fault_ = static_cast<Fault>(value - static_cast<unsigned>(Order::FAULT));
    return Order::FAULT;
  }

  // The fault of the last order FAULT.
  [[nodiscard]] Fault fault() const { return fault_; }

 private:
  std::FILE* file_;
  Fault fault_ = Fault::NONE;
};

}  // namespace ptkit::emulated
