// The buffers of one CPU, or one thread, in a session of the driver, and the stream that is written from
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/common/snapshot_delta.h"
#include "capture/device/branches.h"
#include "capture/device/interruptions.h"
#include "capture/linux/driver/port.h"
#include "capture/linux/driver/sideband.h"
#include "capture/linux/output/bundle_output.h"

namespace ptkit::capture {

class DriverBuffer {
 public:
  // Maps the buffers of a CPU. Returns nothing if the session does not have the CPU. The buffer of a thread
  // (PTKIT_TARGET_TASK) has the number 0.
  [[nodiscard]] static base::Result<std::optional<DriverBuffer>> open(DriverPort& port,
                                                                      const ptkit_config& config,
                                                                      std::uint32_t cpu);

  [[nodiscard]] std::uint32_t cpu() const noexcept { return cpu_; }
  [[nodiscard]] int tid() const noexcept { return tid_; }  // 0: the buffer belongs to a CPU
  [[nodiscard]] std::string label() const;                 // for warnings
  [[nodiscard]] std::uint32_t stream() const noexcept { return stream_; }
  void set_stream(std::uint32_t stream) noexcept { stream_ = stream; }

  // The thread began before its tracing did: drain() writes a loss before the first trace.
  void begin_late() noexcept { late_ = true; }
  // There will be no trace: the port is closed.
  void disable() noexcept { port_ = nullptr; }

  // Writes new trace to the bundle and new sideband to `records`, and returns the space to the driver
  // (PTKIT_CONSUME). Buffers without wake-ups, such as rings, are not read while tracing is on: this function
  // reads their sideband only.
  [[nodiscard]] std::optional<base::Failure> drain(BundleOutput& output, std::vector<SystemRecord>& records);
  // While tracing is paused or stopped: writes the new trace of buffers without wake-ups. Every call reports
  // new losses.
  [[nodiscard]] std::optional<base::Failure> collect(BundleOutput& output,
                                                     std::vector<SystemRecord>& records);
  // Before tracing goes on after a pause: the next branch does not continue at the target of the last one.
  [[nodiscard]] std::optional<base::Failure> note_pause();

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
        tid_(config.task),
        ring_(config.mode == PTKIT_MODE_RING),
        wakes_up_(config.wake_up_bytes),
        snapshots_(config.buffer_bytes) {
    if (config.output != PTKIT_OUTPUT_BTS) return;
    branches_.emplace((config.flags & PTKIT_TRACE_KERNEL) != 0);
    snapshots_ = SnapshotDelta(config.buffer_bytes - config.buffer_bytes % DriverBranches::kRecordBytes);
  }

  [[nodiscard]] std::optional<base::Failure> read_status(ptkit_status& status);
  void write(BundleOutput& output, base::Bytes bytes, std::vector<SystemRecord>& records);
  void write_branches(BundleOutput& output, base::Bytes bytes, std::vector<SystemRecord>& records);
  void write_loss(BundleOutput& output, base::Status cause);
  void write_trace(BundleOutput& output, std::uint64_t from, std::uint64_t to,
                   std::vector<SystemRecord>& records);
  void write_with_losses(BundleOutput& output, const ptkit_status& status, std::uint64_t from,
                         std::vector<SystemRecord>& records);
  void read_sideband(const ptkit_status& status, std::vector<SystemRecord>& records);
  void collect_ring(BundleOutput& output, const std::vector<std::uint8_t>& newest, bool lapped,
                    std::uint64_t position, std::vector<SystemRecord>& records);

  DriverPort* port_;
  std::uint32_t cpu_;
  int tid_;
  std::uint32_t stream_ = 0;
  bool late_ = false;
  bool ring_;
  std::uint64_t wakes_up_;  // bytes of trace between wake-ups; 0: none
  base::Bytes data_;
  base::Bytes sideband_;
  std::uint64_t tail_ = 0;
  std::uint64_t sideband_tail_ = 0;
  bool cleared_ = false;                         // without wake-ups: that is written as a loss
  std::uint64_t last_loss_ = ~std::uint64_t{0};  // position of the last reported loss
  std::vector<std::uint64_t> pauses_;            // positions that drain() has not reached
  Interruptions interruptions_;
  SnapshotDelta snapshots_;
  std::optional<DriverBranches> branches_;  // Branch Trace Store
  Counts counts_;
};

}  // namespace ptkit::capture
