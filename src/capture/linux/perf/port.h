// Access to perf events of Linux: perf_event_open(2), ioctl(), mmap() and poll() of events, files of sysfs.
#pragma once

#include <linux/perf_event.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ptkit::capture {

// Tests implement a fake kernel. Events live as long as the port.
class PerfPort {
 public:
  PerfPort() = default;
  PerfPort(const PerfPort&) = delete;
  PerfPort& operator=(const PerfPort&) = delete;
  virtual ~PerfPort() = default;

  // perf_event_open() for a thread (-1: all) on a CPU (-1: any). Returns the file descriptor, or -errno.
  [[nodiscard]] virtual int open(perf_event_attr& attr, int tid, int cpu) = 0;
  virtual void close(int event) = 0;
  // ioctl(). Returns 0, or the errno.
  [[nodiscard]] virtual int request(int event, unsigned long number, std::uintptr_t argument) = 0;

  // mmap() of an event. A failure gives no bytes, and the errno in `error`.
  struct Mapped {
    std::span<std::uint8_t> bytes;
    int error = 0;
  };
  [[nodiscard]] virtual Mapped map(int event, std::uint64_t offset, std::uint64_t bytes, bool writable) = 0;
  virtual void unmap(std::span<std::uint8_t> bytes) = 0;
  // poll(): returns when a file has data, or after `limit`. Returns the files with POLLHUP: they never get
  // data again.
  [[nodiscard]] virtual std::vector<int> wait(std::span<const int> files,
                                              std::chrono::milliseconds limit) = 0;

  // A small file of sysfs or procfs, without trailing blanks; nothing if it cannot be read.
  [[nodiscard]] virtual std::optional<std::string> read(const std::string& path) const = 0;
  [[nodiscard]] virtual std::vector<int> threads(int pid) const = 0;
};

using OpenPerf = std::function<std::unique_ptr<PerfPort>()>;

// The running kernel.
[[nodiscard]] std::unique_ptr<PerfPort> open_perf();

}  // namespace ptkit::capture
