// The buffers of one CPU in a session of the driver, and the stream that is written from them.
#pragma once

#include <optional>
#include <vector>

#include "capture/driver/port.h"
#include "capture/driver/sideband.h"
#include "capture/hardware/snapshot_delta.h"
#include "capture/output/bundle_output.h"

namespace ptkit::capture {

class DriverBuffer {
 public:
  // Maps the buffers of a CPU. Returns nothing if the session does not have the CPU.
  [[nodiscard]] static base::Result<std::optional<DriverBuffer>> open(DriverPort& port,
                                                                      const ptkit_config& config,
                                                                      std::uint32_t cpu);

  [[nodiscard]] std::uint32_t cpu() const noexcept { return cpu_; }
  [[nodiscard]] std::uint32_t stream() const noexcept { return stream_; }
  void set_stream(std::uint32_t stream) noexcept { stream_ = stream; }

  // Writes new trace to the bundle and new sideband to `records`, and returns the room to the driver
  // (PTKIT_CONSUME). Buffers without wake-ups, such as rings, are not read while tracing is on: this function
  // reads their sideband only.
  [[nodiscard]] std::optional<base::Failure> drain(BundleOutput& output, std::vector<SystemRecord>& records);
  // While tracing is paused or stopped: writes the new trace of buffers without wake-ups. Every call reports
  // new losses.
  [[nodiscard]] std::optional<base::Failure> collect(BundleOutput& output);

  struct Counts {
    std::uint64_t bytes = 0;         // of trace
    std::uint64_t stops = 0;         // full buffers that stopped tracing
    std::uint64_t lost_records = 0;  // of sideband
    std::uint64_t bad_bytes = 0;     // of sideband
    bool cleared = false;            // TraceEn was cleared by VMXON or another tracer
    bool waits = false;              // since then it cannot be set: tracing goes on after PTKIT_RESUME
    bool refused = false;            // perf has the trace unit: nothing was traced
    bool lost_children = false;      // the driver had no memory to follow children
    int error = 0;                   // errno: tracing has ended
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  DriverBuffer(DriverPort& port, const ptkit_config& config, std::uint32_t cpu)
      : port_(&port),
        cpu_(cpu),
        ring_(config.mode == PTKIT_MODE_RING),
        wakes_up_(config.wake_up_bytes),
        snapshots_(config.buffer_bytes) {}

  [[nodiscard]] std::optional<base::Failure> read_status(ptkit_status& status);
  void write_trace(BundleOutput& output, std::uint64_t from, std::uint64_t to);
  void write_with_losses(BundleOutput& output, const ptkit_status& status, std::uint64_t from);
  void collect_ring(BundleOutput& output, const std::vector<std::uint8_t>& newest, bool lapped,
                    std::uint64_t position);

  DriverPort* port_;
  std::uint32_t cpu_;
  std::uint32_t stream_ = 0;
  bool ring_;
  std::uint64_t wakes_up_;  // bytes of trace between wake-ups; 0: none
  base::Bytes data_;
  base::Bytes sideband_;
  std::uint64_t tail_ = 0;
  std::uint64_t sideband_tail_ = 0;
  std::uint64_t clears_ = 0;                     // that were written as losses
  std::uint64_t last_loss_ = ~std::uint64_t{0};  // position of the last reported loss
  SnapshotDelta snapshots_;
  Counts counts_;
};

}  // namespace ptkit::capture
