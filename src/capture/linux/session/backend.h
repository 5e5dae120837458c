// Interface of a back end that programs the hardware trace units: ptkit's kernel driver or perf.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/common/record_options.h"
#include "capture/linux/output/bundle_output.h"
#include "capture/linux/session/filter_resolver.h"
#include "capture/linux/sideband/system_record.h"

namespace ptkit::capture {

// A record of the kernel, and the stream of the buffer that the record was read from.
using SidebandRecord = std::pair<SystemRecord, std::uint32_t>;

// One thread calls all functions. A failure names the cause and the remedy.
//
//   prepare -> configure -> set_breakpoints -> start <-> pause / resume -> stop
//                                              drain, wait: at any time after configure
//                                              collect: while paused
class HardwareBackend {
 public:
  using Problem = std::optional<base::Failure>;

  HardwareBackend() = default;
  HardwareBackend(const HardwareBackend&) = delete;
  HardwareBackend& operator=(const HardwareBackend&) = delete;
  virtual ~HardwareBackend() = default;

  [[nodiscard]] virtual const char* name() const noexcept = 0;
  // Queries the capabilities of kernel and processor, and checks the options against them. `warnings` gets
  // one sentence for each feature that the recording does without.
  [[nodiscard]] virtual Problem prepare(const RecordOptions& options,
                                        std::vector<trace::Warning>& warnings) = 0;
  // Allocates events and buffers; tracing stays off. `pid` 0: all processes.
  [[nodiscard]] virtual Problem configure(int pid, const std::vector<ResolvedFilter>& filters) = 0;
  // Opens the events of triggers, disabled. `pid` 0: in all processes.
  [[nodiscard]] virtual Problem set_breakpoints(const std::vector<Breakpoint>& breakpoints, int /*pid*/) {
    if (breakpoints.empty()) return {};
    return base::Failure{base::Status::UNSUPPORTED, 0, "triggers: this back end has none"};
  }
  [[nodiscard]] virtual Problem enable_breakpoints() { return {}; }
  // Triggers that fired since the last call, one entry for each event.
  [[nodiscard]] virtual std::vector<std::uint32_t> take_fired() { return {}; }
  // One stream for each buffer. set_stream() assigns the bundle's stream numbers in this order. start(),
  // resume() and drain() may add buffers at the end; their streams are set before the next drain().
  [[nodiscard]] virtual std::vector<trace::Stream> streams() const = 0;
  virtual void set_stream(std::size_t index, std::uint32_t stream) = 0;
  // The registers and clocks of this recording. A clock that the kernel does not report is left out.
  [[nodiscard]] virtual trace::Configuration configuration() const = 0;
  // Whether drain() and collect() give records of processes.
  [[nodiscard]] virtual bool has_sideband() const noexcept = 0;
  // Whether records of mappings and names come from all processes, whatever is traced.
  [[nodiscard]] virtual bool records_others() const noexcept { return false; }
  // Whether the kernel's code while tracing is not yet its code after configure(): start() registers
  // tracepoint probes (kernel/linux/session/probes.c).
  [[nodiscard]] virtual bool start_changes_kernel_code() const noexcept { return true; }
  // Whether KSYMBOL records report all code that the kernel generates after configure().
  [[nodiscard]] virtual bool reports_kernel_code() const noexcept = 0;

  [[nodiscard]] virtual Problem start() = 0;
  [[nodiscard]] virtual Problem pause() = 0;
  [[nodiscard]] virtual Problem resume() = 0;
  virtual void stop() = 0;
  // Reads what can be read while tracing runs.
  [[nodiscard]] virtual Problem drain(BundleOutput& output, std::vector<SidebandRecord>& records) = 0;
  // Reads what can be read only while tracing is paused.
  [[nodiscard]] virtual Problem collect(BundleOutput& output, std::vector<SidebandRecord>& records) = 0;

  // Returns when a buffer has data, when `handle` (a pidfd; -1: none) is ready, or after `limit`.
  virtual void wait(int handle, bool paused, std::chrono::milliseconds limit) = 0;
  [[nodiscard]] virtual std::vector<trace::Warning> warnings() const = 0;
  [[nodiscard]] virtual std::uint64_t trace_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t lost_records() const noexcept = 0;
  // Whether tracing failed on any processor.
  [[nodiscard]] virtual bool failed() const noexcept = 0;
};

}  // namespace ptkit::capture
