// The sessions of the driver that one recording has (one, or one for each processor that was chosen), and
// what they share.
#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "capture/driver_buffer.h"
#include "capture/driver_port.h"

namespace ptkit::capture {

// A record, and the stream of the processor that told it.
using ToldRecord = std::pair<DriverRecord, std::uint32_t>;

class DriverUnits {
 public:
  DriverUnits(OpenDriver open, const ptkit_query& query) : open_(std::move(open)), query_(query) {}

  // `first` is a session that is not configured yet. `cpus` empty: all processors.
  [[nodiscard]] std::optional<base::Failure> configure(std::unique_ptr<DriverPort> first,
                                                       const ptkit_config& config,
                                                       const std::vector<std::uint32_t>& cpus);
  [[nodiscard]] std::vector<DriverBuffer>& buffers() noexcept { return buffers_; }

  [[nodiscard]] std::optional<base::Failure> start();
  [[nodiscard]] std::optional<base::Failure> pause();
  [[nodiscard]] std::optional<base::Failure> resume();
  void stop();
  // Whatever can be had while tracing runs.
  [[nodiscard]] std::optional<base::Failure> drain(BundleOutput& output, std::vector<ToldRecord>& records);
  // What is there only where tracing pauses.
  [[nodiscard]] std::optional<base::Failure> collect(BundleOutput& output);

  // Until something can be drained, `handle` (a pidfd; -1: none) is ready, or so much time has passed.
  void wait(int handle, bool paused, std::chrono::milliseconds limit) const;
  [[nodiscard]] std::vector<std::string> warnings() const;
  [[nodiscard]] std::uint64_t trace_bytes() const noexcept;
  [[nodiscard]] bool failed() const noexcept;  // on some processor

 private:
  [[nodiscard]] std::optional<base::Failure> add(std::unique_ptr<DriverPort> port, ptkit_config config);
  [[nodiscard]] std::optional<base::Failure> tell(unsigned long number, const char* what);

  OpenDriver open_;
  ptkit_query query_;
  std::vector<std::unique_ptr<DriverPort>> ports_;
  std::vector<DriverBuffer> buffers_;
};

}  // namespace ptkit::capture
