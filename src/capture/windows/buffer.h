// The buffer of one CPU in a session of the Windows driver, and the stream that is written from it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/common/snapshot_delta.h"
#include "capture/device/branches.h"
#include "capture/device/interruptions.h"
#include "capture/windows/port.h"
#include "formats/ptk/writer.h"

namespace ptkit::capture {

class WindowsBuffer {
 public:
  using Problem = std::optional<base::Failure>;
  // The address space of a process: branch records name their process.
  using SpaceOf = std::function<trace::SpaceId(std::int64_t pid)>;

  // Returns nothing if the session does not have the CPU.
  [[nodiscard]] static base::Result<std::optional<WindowsBuffer>> open(WindowsPort& port,
                                                                       const ptkit_config& config,
                                                                       std::uint32_t cpu);

  // Begins the stream `number` of the bundle. `whole` has its process.
  void begin(formats::PtkWriter& writer, std::uint32_t number, trace::Stream whole);

  // Writes the new trace to the bundle and gives its space back to the driver (PTKIT_WINDOWS_CONSUME).
  // Buffers without wake-ups, such as rings, are not read while tracing is on.
  [[nodiscard]] Problem drain(formats::PtkWriter& writer, const SpaceOf& space_of);
  // Writes the new trace of buffers without wake-ups: a snapshot, or the end.
  [[nodiscard]] Problem collect(formats::PtkWriter& writer, const SpaceOf& space_of);

  // Threads that ran on the CPU, for a stream of packets.
  void write_switches(formats::PtkWriter& writer, std::vector<trace::Switch> switches);

  // For a stream of branch records: the thread between two marks; nothing: not known yet.
  using ThreadBetween = std::function<std::optional<trace::Switch>(std::uint64_t since, std::uint64_t until)>;
  // From now on threads are those of write_threads(). Otherwise rows have the process of their marks.
  void expect_threads() noexcept { expects_threads_ = true; }
  // Writes the threads of what drain() and collect() wrote.
  void write_threads(formats::PtkWriter& writer, const ThreadBetween& thread_between);

  [[nodiscard]] std::uint32_t cpu() const noexcept { return cpu_; }
  [[nodiscard]] std::uint64_t sideband_bytes() const noexcept { return sideband_bytes_; }

  struct Counts {
    std::uint64_t bytes = 0;   // of the stream
    std::uint64_t stops = 0;   // full buffers that stopped tracing
    std::uint32_t reason = 0;  // PTKIT_REASON_*: tracing has ended
    bool cleared = false;      // TraceEn was cleared by VMXON or another tracer
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  WindowsBuffer(WindowsPort& port, const ptkit_config& config, const ptkit_windows_buffer& buffer);

  [[nodiscard]] Problem read_status(ptkit_status& status);
  [[nodiscard]] Problem write_trace(formats::PtkWriter& writer, std::uint64_t to, const SpaceOf& space_of);
  void write(formats::PtkWriter& writer, base::Bytes bytes, const SpaceOf& space_of);
  void write_branches(formats::PtkWriter& writer, base::Bytes bytes, const SpaceOf& space_of);
  void write_loss(formats::PtkWriter& writer, base::Status cause);
  void write_newest(formats::PtkWriter& writer, const ptkit_windows_newest& newest,
                    const std::vector<std::uint8_t>& bytes, const SpaceOf& space_of);
  [[nodiscard]] base::Failure failed(const char* what, std::uint32_t error) const;

  WindowsPort* port_;
  std::uint32_t cpu_;
  std::uint32_t stream_ = 0;
  trace::Stream whole_;  // as it is described, without switches
  bool ring_;
  bool wakes_up_;
  std::uint64_t data_bytes_;
  std::uint64_t sideband_bytes_;
  std::uint64_t tail_ = 0;
  bool full_ = false;  // the loss at the end of a buffer without wake-ups is written
  Interruptions interruptions_;
  SnapshotDelta snapshots_;
  std::optional<DriverBranches> branches_;  // Branch Trace Store
  bool expects_threads_ = false;
  // Branches between two marks, without their thread.
  struct UnattributedBytes {
    trace::Switch owner;      // by the marks
    std::uint64_t until = 0;  // 0: not known
  };
  std::deque<UnattributedBytes> unattributed_;
  Counts counts_;
};

}  // namespace ptkit::capture
