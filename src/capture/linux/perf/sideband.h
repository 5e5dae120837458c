// Sideband records of perf's dummy events, which count nothing (PERF_COUNT_SW_DUMMY).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/linux/output/bundle_output.h"
#include "capture/linux/perf/buffer.h"
#include "capture/linux/perf/port.h"
#include "capture/linux/sideband/system_record.h"

namespace ptkit::capture {

// A dummy event without records. `sample_type`: the trailer of its records.
[[nodiscard]] perf_event_attr dummy_event(std::uint64_t sample_type) noexcept;
// A dummy event with records of mappings, names, threads that begin and end.
[[nodiscard]] perf_event_attr sideband_event(std::uint64_t sample_type) noexcept;
// perf_event_open() without the fields that an older kernel does not know.
[[nodiscard]] int open_sideband_event(PerfPort& port, perf_event_attr attr, int tid, int cpu);

// Sideband records for a back end that traces without perf. Events of threads would make the kernel execute
// perf's code at each of their context switches, which is traced, so there is one event for each CPU.
class PerfSideband {
 public:
  enum class Subject : std::uint8_t {
    PROCESSES,    // EXEC, COMM and MMAP records: executable mappings, names and exec() of all processes
    KERNEL_CODE,  // KSYMBOL and TEXT_POKE records: code that the kernel generates or changes at run time
  };
  PerfSideband(std::shared_ptr<PerfPort> port, Subject subject) : port_(std::move(port)), subject_(subject) {}

  // Opens the events, enabled. `cpus` empty: all that are online. `bytes`: of each ring, a power of two; less
  // if no more memory may be locked. If one of the system calls fails, no event is open, and
  // warnings() has the cause.
  void open(std::vector<std::uint32_t> cpus, std::uint64_t bytes);
  [[nodiscard]] bool is_open() const noexcept { return !rings_.empty(); }

  // Calls `take` for each new record of the subject.
  [[nodiscard]] std::optional<base::Failure> drain(
      BundleOutput& output, const std::function<void(std::uint32_t cpu, SystemRecord record)>& take);
  // poll() of `files` and the rings: returns when one has data, or after `limit`.
  void wait(std::vector<int> files, std::chrono::milliseconds limit);
  [[nodiscard]] std::vector<trace::Warning> warnings() const;
  [[nodiscard]] std::uint64_t lost_records() const noexcept;

 private:
  // A system call that failed.
  struct CallError {
    const char* call = "";
    int number = 0;  // errno
  };

  [[nodiscard]] std::optional<CallError> open_all(const std::vector<std::uint32_t>& cpus);
  [[nodiscard]] std::optional<CallError> open_one(int cpu);
  [[nodiscard]] perf_event_attr event() const noexcept;
  [[nodiscard]] bool is_subject(SystemRecord::Kind kind) const noexcept;
  void close_all();

  std::shared_ptr<PerfPort> port_;
  Subject subject_;
  std::uint64_t asked_bytes_ = 0;  // of each ring
  std::uint64_t bytes_ = 0;
  std::vector<PerfBuffer> rings_;
  std::string error_;
};

}  // namespace ptkit::capture
