// A fake device that behaves as the kernel driver does.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "capture/linux/driver/port.h"
#include "capture/linux/process/process.h"
#include "unit/support/units/driver_abi.h"

namespace ptkit::capture::test {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSidebandOffset = std::uint64_t{1} << 39U;
constexpr unsigned kDataShift = 40;

inline std::vector<std::uint8_t> psb() {
  std::vector<std::uint8_t> out;
  for (int i = 0; i < 8; ++i) out.insert(out.end(), {0x02, 0x82});
  return out;
}

// State of the fake device. A test owns it, and scripts its events.
struct FakeDevice {
  struct Cpu {
    std::vector<std::uint8_t> memory;
    std::vector<std::uint8_t> sideband;
    ptkit_status status{};
    std::uint64_t written = 0;  // bytes, in ring mode, too
    std::uint64_t limit = 0;    // with wake-ups: position where a full buffer stops
    std::uint64_t dropped = 0;  // bytes without room
  };

  ptkit_query query = capable_query();
  ptkit_config config{};
  std::map<std::uint32_t, Cpu> cpus;
  std::map<unsigned long, int> errors;  // by ioctl number: the errno to return
  // PTKIT_STATUS of the lowest CPU runs the next step.
  std::vector<std::function<void(FakeDevice&)>> script;
  std::function<void(FakeDevice&)> on_consume;
  std::function<void()> on_configure;
  std::vector<unsigned long> requests;
  bool closed = false;
  bool started = false;
  std::size_t next = 0;
  int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

  FakeDevice() = default;
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;
  ~FakeDevice() { ::close(event); }

  // The trace unit writes until the buffer is full, or overwrites.
  void write(std::uint32_t number, const std::vector<std::uint8_t>& bytes) {
    Cpu& cpu = cpus.at(number);
    for (const std::uint8_t byte : bytes) {
      const bool full = config.mode == PTKIT_MODE_FULL &&
                        cpu.written == (config.wake_up_bytes != 0 ? cpu.limit : cpu.memory.size());
      if (full) {
        ++cpu.dropped;
        if ((cpu.status.flags & PTKIT_STATUS_FULL) == 0) {
          ++cpu.status.stops;
          cpu.status.stopped_at[1] = std::exchange(cpu.status.stopped_at[0], cpu.written);
        }
        cpu.status.flags |= PTKIT_STATUS_FULL;
        continue;
      }
      cpu.memory[cpu.written % cpu.memory.size()] = byte;
      ++cpu.written;
    }
    if (config.mode == PTKIT_MODE_RING && cpu.written >= cpu.memory.size())
      cpu.status.flags |= PTKIT_STATUS_LAPPED;
    cpu.status.position = cpu.written % cpu.memory.size();
    if (config.mode == PTKIT_MODE_FULL && cpu.written == cpu.memory.size()) cpu.status.position = cpu.written;
    if (config.wake_up_bytes != 0) cpu.status.head = cpu.written;
  }

  template <typename Record>
  void write_record(std::uint32_t number, Record record, const std::string& text = {}) {
    Cpu& cpu = cpus.at(number);
    reinterpret_cast<ptkit_record*>(&record)->cpu = number;
    const auto* const letters = reinterpret_cast<const std::uint8_t*>(text.c_str());
    for (const std::uint8_t byte : record_bytes(record, {letters, text.empty() ? 0 : text.size() + 1})) {
      cpu.sideband[cpu.status.sideband_head % cpu.sideband.size()] = byte;
      ++cpu.status.sideband_head;
    }
  }
};

class FakePort : public DriverPort {
 public:
  explicit FakePort(FakeDevice& device) : device_(device) {}
  FakePort(const FakePort&) = delete;
  FakePort& operator=(const FakePort&) = delete;
  ~FakePort() override { device_.closed = true; }

  int request(unsigned long number, void* argument) override {
    device_.requests.push_back(number);
    if (const auto error = device_.errors.find(number); error != device_.errors.end()) return error->second;
    switch (number) {
      case PTKIT_QUERY:
        std::memcpy(argument, &device_.query, sizeof device_.query);
        return 0;
      case PTKIT_CONFIGURE:
        if (device_.on_configure) device_.on_configure();
        return configure(*static_cast<ptkit_config*>(argument));
      case PTKIT_BUFFER:
        return describe(*static_cast<ptkit_buffer*>(argument));
      case PTKIT_STATUS:
        return status(*static_cast<ptkit_status*>(argument));
      case PTKIT_CONSUME:
        return consume(*static_cast<ptkit_consume*>(argument));
      case PTKIT_SNAPSHOT:
        return snapshot(*static_cast<ptkit_snapshot*>(argument));
      case PTKIT_START:
        device_.started = true;
        return 0;
      case PTKIT_PAUSE:
      case PTKIT_RESUME:
        return device_.started ? 0 : EINVAL;
      case PTKIT_STOP:
        device_.started = false;
        return 0;
      default:
        return ENOTTY;
    }
  }

  base::Bytes map(std::uint64_t offset, std::uint64_t bytes) override {
    FakeDevice::Cpu& cpu = device_.cpus.at(static_cast<std::uint32_t>(offset >> kDataShift));
    const base::Bytes all = (offset & kSidebandOffset) != 0 ? cpu.sideband : cpu.memory;
    return all.first(bytes);
  }

  [[nodiscard]] int file() const override { return device_.event; }

 private:
  int configure(const ptkit_config& config) {
    device_.config = config;
    for (std::uint32_t i = 0; i < device_.query.cpus; ++i) {
      if (config.target != PTKIT_TARGET_ALL && i != config.cpu) continue;
      FakeDevice::Cpu& cpu = device_.cpus[i];
      cpu.memory.assign(config.buffer_bytes, 0);
      cpu.sideband.assign(config.sideband_bytes, 0);
      cpu.limit = config.buffer_bytes;
    }
    return 0;
  }

  int describe(ptkit_buffer& buffer) {
    const auto at = device_.cpus.find(buffer.cpu);
    if (at == device_.cpus.end()) return EINVAL;
    buffer.data_offset = std::uint64_t{buffer.cpu} << kDataShift;
    buffer.data_bytes = at->second.memory.size();
    buffer.sideband_offset = buffer.data_offset | kSidebandOffset;
    buffer.sideband_bytes = at->second.sideband.size();
    return 0;
  }

  int status(ptkit_status& out) {
    if (out.cpu == device_.cpus.begin()->first && device_.started && device_.next < device_.script.size())
      device_.script[device_.next++](device_);
    const std::uint32_t number = out.cpu;
    out = device_.cpus.at(number).status;
    out.cpu = number;
    return 0;
  }

  int consume(const ptkit_consume& from) {
    if (device_.on_consume) device_.on_consume(device_);
    FakeDevice::Cpu& cpu = device_.cpus.at(from.cpu);
    if (from.tail < cpu.status.tail || from.tail > cpu.status.head) return EINVAL;
    cpu.status.tail = from.tail;
    cpu.status.sideband_tail = from.sideband_tail;
    if (device_.config.wake_up_bytes == 0) return 0;
    // Regions are as large as wake-ups. All regions but the one that is being read can be written.
    const std::uint64_t region = device_.config.wake_up_bytes;
    cpu.limit = from.tail / region * region + cpu.memory.size();
    if (cpu.written < cpu.limit) cpu.status.flags &= ~PTKIT_STATUS_FULL;
    return 0;
  }

  int snapshot(ptkit_snapshot& out) {
    if (!device_.started || device_.config.wake_up_bytes != 0) return EINVAL;
    const FakeDevice::Cpu& cpu = device_.cpus.at(out.cpu);
    const bool lapped = (cpu.status.flags & PTKIT_STATUS_LAPPED) != 0;
    out.flags = cpu.status.flags;
    out.position = cpu.status.position;
    out.bytes = std::min<std::uint64_t>(out.bytes, lapped ? cpu.memory.size() : cpu.status.position);
    auto* to = reinterpret_cast<std::uint8_t*>(out.address);
    for (std::uint64_t i = 0; i < out.bytes; ++i)
      to[i] = cpu.memory[(out.position + cpu.memory.size() - out.bytes + i) % cpu.memory.size()];
    return 0;
  }

  FakeDevice& device_;
};

inline OpenDriver opener(FakeDevice& device) {
  return [&device]() -> base::Result<std::unique_ptr<DriverPort>> {
    return std::unique_ptr<DriverPort>(std::make_unique<FakePort>(device));
  };
}

}  // namespace ptkit::capture::test
