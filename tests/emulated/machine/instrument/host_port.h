// Two ports by which the guest talks to the one who runs the machine (guest/host.c is the other side): bytes
// for a file, and orders.
#pragma once

#include <cstdint>
#include <cstdio>

namespace ptkit::emulated {

class HostPort {
 public:
  enum class Order : std::uint8_t {
    NONE = 0,
    POWER_OFF = 1,
    LOG_NEVER = 2,
    LOG_WHILE_TRACING = 3,
    LOG_ALWAYS = 4
  };
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
    const bool known = port == kOrders && value <= static_cast<unsigned>(Order::LOG_ALWAYS);
    return known ? static_cast<Order>(value) : Order::NONE;
  }

 private:
  std::FILE* file_;
};

}  // namespace ptkit::emulated
