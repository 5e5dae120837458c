// The PMU intel_pt of this machine (sysfs), options as perf's driver takes them, and errors with remedies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/common/record_options.h"
#include "capture/linux/perf/port.h"
#include "trace/bundle.h"
#include "trace_unit/msr/capabilities.h"
#include "trace_unit/msr/perf.h"

namespace ptkit::capture {

// The PMUs in sysfs.
inline const std::string kPerfSources = "/sys/bus/event_source/devices/";

// Why something failed, and the remedy.
struct PerfError {
  std::string what;
  std::string remedy;

  [[nodiscard]] std::string text() const { return what + "; " + remedy; }
  [[nodiscard]] base::Failure failure() const { return {base::Status::UNSUPPORTED, 0, text()}; }
};

// "0-3,8" as the kernel lists processors.
[[nodiscard]] std::vector<std::uint32_t> read_cpus(const std::string& text);
// CPUs that are online, by sysfs.
[[nodiscard]] std::vector<std::uint32_t> online_cpus(const PerfPort& port);
// Checks that the CPUs of the options are online.
[[nodiscard]] std::optional<base::Failure> check_cpus(const RecordOptions& options,
                                                      const std::vector<std::uint32_t>& online);

// The PMU intel_pt, as sysfs describes it.
struct PerfPmu {
  std::uint32_t type = 0;                     // perf_event_attr.type
  trace_unit::msr::Capabilities can;          // the folder `caps`
  bool lip_known = false;                     // whether `caps` has payloads_lip
  std::map<std::string, std::string> format;  // bits of terms: "tsc" -> "config:10"
  unsigned filters = 0;                       // address ranges (nr_addr_filters)
  std::uint8_t max_nonturbo_ratio = 0;
  std::vector<std::uint32_t> cpus;  // online CPUs
};
// Returns nothing, and the cause in `error`, if the PMU does not exist.
[[nodiscard]] std::optional<PerfPmu> find_pmu(const PerfPort& port, PerfError& error);

// perf_event_attr.type of the PMU `name`; nothing if it does not exist.
[[nodiscard]] std::optional<std::uint32_t> event_type(const PerfPort& port, const std::string& name);

// The event of one recording. A failure names the option that needs a feature which is missing.
[[nodiscard]] base::Result<trace_unit::msr::PerfEvent> perf_event(const RecordOptions& options,
                                                                  const PerfPmu& pmu);
// IA32_RTIT_CTL as perf's driver programs it, and clocks that sysfs reports.
[[nodiscard]] trace::Configuration recorded_configuration(const trace_unit::msr::PerfEvent& event,
                                                          const PerfPmu& pmu);

// Scope of the event that was being opened, for the text of errors.
struct PerfScope {
  bool kernel = false;      // kernel code
  bool whole_cpus = false;  // all processes
  int pid = 0;
  int cpu = -1;
  std::uint64_t config = 0;
  Recorded recorded = Recorded::PACKETS;
};
// The error of perf_event_open(); `error` is the errno.
[[nodiscard]] PerfError open_error(const PerfPort& port, const PerfScope& scope, int error);
// The error of perf_event_open() that failed with EINVAL. Removes fields of `attr`, one by one, until the
// event can be opened: that field was the cause.
[[nodiscard]] PerfError invalid_error(PerfPort& port, perf_event_attr attr, int tid, int cpu,
                                      const PerfScope& scope);
// MemAvailable of /proc/meminfo, in bytes; 0: the kernel does not report it.
[[nodiscard]] std::uint64_t free_memory(const PerfPort& port);
// The error of mmap() of `count` buffers of `bytes` each.
[[nodiscard]] PerfError map_error(const PerfPort& port, std::uint64_t bytes, std::size_t count, int error);
// The error of PERF_EVENT_IOC_SET_FILTER.
[[nodiscard]] PerfError filter_error(const std::string& text, const PerfScope& scope, int error);

// For `ptkit doctor`: whether user code of a process can be traced, and the features of the PMU.
struct PerfSupport {
  PerfError error;  // empty: supported
  std::string abilities;
};
[[nodiscard]] PerfSupport pt_support(PerfPort& port);

// Whether an event can be opened, and for which threads and CPUs. `on` gives the attributes for a CPU (-1:
// any) of a hybrid processor.
using EventOn = std::function<perf_event_attr(int cpu)>;
[[nodiscard]] PerfSupport try_event(PerfPort& port, const EventOn& on, const PerfScope& scope);

// The attributes of an event of a PMU.
[[nodiscard]] perf_event_attr event_attr(const trace_unit::msr::PerfEvent& event,
                                         std::uint32_t type) noexcept;

}  // namespace ptkit::capture
