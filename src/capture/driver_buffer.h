// One processor's buffers of a session of the driver, and the stream that comes of them.
#pragma once

#include <optional>
#include <vector>

#include "capture/bundle_output.h"
#include "capture/driver_port.h"
#include "capture/driver_sideband.h"
#include "capture/ring_copies.h"

namespace ptkit::capture {

class DriverBuffer {
 public:
  // Maps the buffers of processor `cpu`; nothing if the session does not have it.
  [[nodiscard]] static base::Result<std::optional<DriverBuffer>> open(DriverPort& port,
                                                                      const ptkit_config& config,
                                                                      std::uint32_t cpu);

  [[nodiscard]] std::uint32_t cpu() const noexcept { return cpu_; }
  [[nodiscard]] std::uint32_t stream() const noexcept { return stream_; }
  void set_stream(std::uint32_t stream) noexcept { stream_ = stream; }

  // What was written since the last time goes to the bundle, and its room back to the driver. Of buffers
  // that nobody empties while they are written (rings, and where there are no wake-ups) only sideband.
  [[nodiscard]] std::optional<base::Failure> drain(BundleOutput& output, std::vector<SystemRecord>& records);
  // Tracing has stopped or pauses: what such buffers have that is new. The first call, too, says what is
  // lost.
  [[nodiscard]] std::optional<base::Failure> collect(BundleOutput& output);

  struct Counts {
    std::uint64_t bytes = 0;         // of trace
    std::uint64_t stops = 0;         // a full buffer stopped tracing
    std::uint64_t lost_records = 0;  // of sideband
    std::uint64_t bad_bytes = 0;     // of sideband
    bool cleared = false;            // somebody else cleared TraceEn
    bool lost_children = false;      // the kernel had no memory to follow them
    int error = 0;                   // tracing has ended
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  DriverBuffer(DriverPort& port, const ptkit_config& config, std::uint32_t cpu)
      : port_(&port),
        cpu_(cpu),
        ring_(config.mode == PTKIT_MODE_RING),
        wakes_up_(config.wake_up_bytes),
        copies_(config.buffer_bytes) {}

  [[nodiscard]] std::optional<base::Failure> look(ptkit_status& status);
  void give(BundleOutput& output, std::uint64_t from, std::uint64_t to);
  void note_stops(BundleOutput& output, const ptkit_status& status, std::uint64_t from);
  [[nodiscard]] std::uint64_t find_restart(std::uint64_t from, std::uint64_t to) const;
  void collect_ring(BundleOutput& output, const std::vector<std::uint8_t>& newest, bool lapped,
                    std::uint64_t position);

  DriverPort* port_;
  std::uint32_t cpu_;
  std::uint32_t stream_ = 0;
  bool ring_;
  std::uint64_t wakes_up_;  // bytes
  base::Bytes data_;
  base::Bytes sideband_;
  std::uint64_t tail_ = 0;
  std::uint64_t last_tail_ = 0;  // the one before: where a full buffer stopped depends on it
  std::uint64_t sideband_tail_ = 0;
  std::uint64_t loss_at_ = ~std::uint64_t{0};  // the last loss that was told
  RingCopies copies_;
  Counts counts_;
};

}  // namespace ptkit::capture
