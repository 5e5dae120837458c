// The processors' trace units as a recording uses them, whoever programs them: ptkit's driver, or perf.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/bundle_output.h"
#include "capture/filter_places.h"
#include "capture/record_options.h"
#include "capture/system_record.h"

namespace ptkit::capture {

// A record, and the stream whose buffer told it.
using ToldRecord = std::pair<SystemRecord, std::uint32_t>;

// For one thread. What fails says what, and what to do about it.
class TraceUnits {
 public:
  using Problem = std::optional<base::Failure>;

  TraceUnits() = default;
  TraceUnits(const TraceUnits&) = delete;
  TraceUnits& operator=(const TraceUnits&) = delete;
  virtual ~TraceUnits() = default;

  [[nodiscard]] virtual const char* name() const noexcept = 0;  // of the back end
  // Asks what there is, and checks the options against that. `warnings` gets what is done without.
  [[nodiscard]] virtual Problem prepare(const RecordOptions& options, std::vector<std::string>& warnings) = 0;
  // Everything is made ready. `pid`: the process; 0: all that runs. `filters`: where they are.
  [[nodiscard]] virtual Problem configure(int pid, const std::vector<FilterPlace>& filters) = 0;
  // Events that triggers wait for, in the process `pid` (0: in any): they are noticed from notice() on.
  [[nodiscard]] virtual Problem watch(const std::vector<WatchPlace>& places, int pid);
  [[nodiscard]] virtual Problem notice() { return {}; }
  // The triggers whose event has happened since the last time: once each time.
  [[nodiscard]] virtual std::vector<std::uint32_t> take_hits() { return {}; }
  // What will be written, in this order; `set_stream` says which numbers the streams got.
  [[nodiscard]] virtual std::vector<trace::Stream> streams() const = 0;
  virtual void set_stream(std::size_t index, std::uint32_t stream) = 0;
  // How it is recorded. Clocks that are not known are left out.
  [[nodiscard]] virtual trace::Configuration configuration() const = 0;
  [[nodiscard]] virtual bool tells() const noexcept = 0;  // of processes: there are records
  // Records come before start(), and the kernel's code is by then as it is while tracing.
  [[nodiscard]] virtual bool tells_at_once() const noexcept { return false; }

  [[nodiscard]] virtual Problem start() = 0;
  [[nodiscard]] virtual Problem pause() = 0;
  [[nodiscard]] virtual Problem resume() = 0;
  virtual void stop() = 0;
  // Whatever can be had while tracing runs.
  [[nodiscard]] virtual Problem drain(BundleOutput& output, std::vector<ToldRecord>& records) = 0;
  // What is there only where tracing pauses.
  [[nodiscard]] virtual Problem collect(BundleOutput& output, std::vector<ToldRecord>& records) = 0;

  // Until something can be drained, `handle` (a pidfd; -1: none) is ready, or so much time has passed.
  virtual void wait(int handle, bool paused, std::chrono::milliseconds limit) = 0;
  [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;
  [[nodiscard]] virtual std::uint64_t trace_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t lost_records() const noexcept = 0;
  [[nodiscard]] virtual bool failed() const noexcept = 0;  // on some processor
};

// "1 time", "2 times".
[[nodiscard]] std::string plural(std::uint64_t count, const std::string& what);

}  // namespace ptkit::capture
