// What perf's intel_pt and the rights to use it are here, and options as it takes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "capture/perf_port.h"
#include "capture/record_options.h"
#include "rtit/capabilities.h"
#include "rtit/perf.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// Where sysfs tells of sources of events.
inline const std::string kPerfSources = "/sys/bus/event_source/devices/";

// Why something does not work, and which knob to turn.
struct PerfRefusal {
  std::string what;
  std::string remedy;

  [[nodiscard]] std::string text() const { return what + "; " + remedy; }
  [[nodiscard]] base::Failure failure() const { return {base::Status::UNSUPPORTED, 0, text()}; }
};

// "0-3,8" as the kernel lists processors.
[[nodiscard]] std::vector<std::uint32_t> read_cpus(const std::string& text);
// Processors that are online, as sysfs says.
[[nodiscard]] std::vector<std::uint32_t> online_cpus(const PerfPort& port);
// Whether they have those that are asked for.
[[nodiscard]] std::optional<base::Failure> check_cpus(const RecordOptions& options,
                                                      const std::vector<std::uint32_t>& online);

// What sysfs says of intel_pt.
struct PerfUnit {
  std::uint32_t type = 0;                     // for perf_event_attr
  rtit::Capabilities can;                     // its caps
  bool lip_known = false;                     // whether they have `payloads_lip`
  std::map<std::string, std::string> format;  // where terms lie in attr.config: "tsc" -> "config:10"
  unsigned filters = 0;                       // ranges of addresses
  std::uint8_t max_nonturbo_ratio = 0;
  std::vector<std::uint32_t> cpus;  // that are online
};
// Nothing, and why in `refusal`.
[[nodiscard]] std::optional<PerfUnit> find_unit(const PerfPort& port, PerfRefusal& refusal);

// The number of an event's type in the folder `name` of sysfs; nothing if there is none.
[[nodiscard]] std::optional<std::uint32_t> event_type(const PerfPort& port, const std::string& name);

// One recording's event. Fails where something is asked for that is not there: the sentence names the option.
[[nodiscard]] base::Result<rtit::PerfEvent> perf_event(const RecordOptions& options, const PerfUnit& unit);
// IA32_RTIT_CTL as perf's driver programs it, and clocks that sysfs tells.
[[nodiscard]] trace::Configuration recorded_configuration(const rtit::PerfEvent& event, const PerfUnit& unit);

// What was to be opened, for words about it.
struct PerfScope {
  bool kernel = false;      // code of the kernel
  bool whole_cpus = false;  // everything that runs
  int pid = 0;
  int cpu = -1;
  std::uint64_t config = 0;
  Recorded recorded = Recorded::PACKETS;
};
// How perf_event_open() refused it: `error` is the errno.
[[nodiscard]] PerfRefusal open_refusal(const PerfPort& port, const PerfScope& scope, int error);
// How it refused it as invalid: what is left out of `attr` and helps was the cause.
[[nodiscard]] PerfRefusal invalid_refusal(PerfPort& port, perf_event_attr attr, int tid, int cpu,
                                          const PerfScope& scope);
// Bytes of memory that the machine can give; 0: not told.
[[nodiscard]] std::uint64_t free_memory(const PerfPort& port);
// How mmap() of the buffers refused: of `bytes` for each of `count`.
[[nodiscard]] PerfRefusal map_refusal(const PerfPort& port, std::uint64_t bytes, std::size_t count,
                                      int error);
// How PERF_EVENT_IOC_SET_FILTER refused.
[[nodiscard]] PerfRefusal filter_refusal(const std::string& text, const PerfScope& scope, int error);

// For `doctor`: whether user code of a process can be traced here, and what the unit can do.
struct PerfState {
  PerfRefusal refusal;  // empty: it can
  std::string abilities;
};
[[nodiscard]] PerfState perf_state(PerfPort& port);

// Whether an event can be opened, and for whom. `on` makes it one of a processor (-1: any), where these are
// not all alike.
using EventOn = std::function<perf_event_attr(int cpu)>;
[[nodiscard]] PerfState try_event(PerfPort& port, const EventOn& on, const PerfScope& scope);

// An event of the unit as one recording has it, before it is opened.
[[nodiscard]] perf_event_attr event_attr(const rtit::PerfEvent& event, std::uint32_t type) noexcept;

}  // namespace ptkit::capture
