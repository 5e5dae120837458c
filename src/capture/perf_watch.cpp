// Triggers: events of perf that tell when an instruction is executed (a breakpoint of the processor) or a
// signal is delivered (a tracepoint of the kernel).
#include <linux/hw_breakpoint.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "capture/perf_units.h"
#include "capture/refusals.h"

namespace ptkit::capture {

namespace {

constexpr std::array<const char*, 2> kTracing{"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"};
constexpr const char* kDelivered = "events/signal/signal_deliver/id";
constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63U;

base::Failure watch_refusal(const WatchPlace& place, int error) {
  if (error == ENOSPC || error == EBUSY) {
    return unsupported(
        "triggers: a processor has four breakpoints, and they are taken (debuggers use them, too); wait for "
        "fewer places");
  }
  if (error == EACCES || error == EPERM) {
    return unsupported(place.signal != 0
                           ? "triggers: not permitted to see signals; run as root, or with CAP_PERFMON"
                           : "triggers: not permitted to watch this place; run as root, or with CAP_PERFMON");
  }
  return unsupported(std::string("triggers: the kernel does not watch for this: ") + std::strerror(error));
}

// The number of the tracepoint; 0: not there, or not to be read.
std::uint64_t delivered_id(const PerfPort& port) {
  for (const char* folder : kTracing) {
    const std::string text = port.read(std::string(folder) + kDelivered).value_or("");
    std::uint64_t id = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), id).ec == std::errc()) return id;
  }
  return 0;
}

perf_event_attr watch_attr(const perf_event_attr& unit, const WatchPlace& place, std::uint64_t signal_id) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.sample_type = unit.sample_type;
  attr.sample_id_all = attr.disabled = attr.exclude_hv = 1;
  attr.sample_period = 1;
  attr.wakeup_events = 1;
  if (place.signal != 0) {
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = signal_id;
    return attr;
  }
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_type = HW_BREAKPOINT_X;
  attr.bp_addr = place.address;
  attr.bp_len = sizeof(long);
  attr.exclude_user = place.address >= kKernelHalf ? 1 : 0;
  attr.exclude_kernel = place.address < kKernelHalf ? 1 : 0;
  return attr;
}

}  // namespace

PerfUnits::Problem PerfUnits::watch(const std::vector<WatchPlace>& places, int pid) {
  // Elsewhere the kernel follows the process.
  family_.begin(options_.hardware.whole_cpus() ? pid : 0, options_.hardware.children);
  const bool signals =
      std::any_of(places.begin(), places.end(), [](const WatchPlace& place) { return place.signal != 0; });
  const std::uint64_t id = signals ? delivered_id(*port_) : 0;
  if (signals && id == 0) {
    return unsupported(
        "triggers: the kernel's tracepoints cannot be read; run as root, and mount tracefs (mount -t tracefs "
        "tracefs /sys/kernel/tracing)");
  }
  const perf_event_attr unit = dummy();
  for (const WatchPlace& place : places) {
    for (const Opened& one : opened_) {
      if (one.again) continue;
      if (auto failure = watch_for(watch_attr(unit, place, id), one, place)) return failure;
    }
  }
  return {};
}

PerfUnits::Problem PerfUnits::watch_for(const perf_event_attr& attr, const Opened& one,
                                        const WatchPlace& place) {
  perf_event_attr mine = attr;
  mine.inherit = one.tid >= 0 && one.cpu >= 0 ? 1 : 0;
  mine.inherit_thread = mine.inherit != 0 && !options_.hardware.children ? 1 : 0;
  const int event = port_->open(mine, one.tid, one.cpu);
  if (event == -ESRCH) return {};
  if (event == -EMFILE || event == -ENFILE) return open_refusal(*port_, scope(), -event).failure();
  if (event < 0) return watch_refusal(place, -event);
  watches_.push_back(event);
  if (place.signal != 0) {
    const std::string filter = "sig == " + std::to_string(place.signal);
    const auto text = reinterpret_cast<std::uintptr_t>(filter.c_str());
    if (const int error = port_->request(event, PERF_EVENT_IOC_SET_FILTER, text); error != 0)
      return watch_refusal(place, error);
  }
  std::uint64_t id = 0;
  const int error = port_->request(event, PERF_EVENT_IOC_ID, reinterpret_cast<std::uintptr_t>(&id));
  if (error != 0) return watch_refusal(place, error);
  triggers_[id] = place;
  return send_to(event, buffers_[one.buffer]);
}

// The kernel's code is everybody's.
void PerfUnits::take_hit(const PerfHit& hit) {
  const auto at = triggers_.find(hit.event);
  if (at == triggers_.end()) return;
  const WatchPlace& place = at->second;
  const bool counts = place.signal != 0
                          ? family_.has(hit.pid)
                          : place.address >= kKernelHalf || family_.has_program(hit.pid, hit.tsc);
  if (counts) hits_.push_back(place.trigger);
}

}  // namespace ptkit::capture
