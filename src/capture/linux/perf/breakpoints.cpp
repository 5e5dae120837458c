// Triggers: perf events for an executed instruction (hardware breakpoint, PERF_TYPE_BREAKPOINT) or a
// delivered signal (tracepoint signal:signal_deliver).
#include <linux/hw_breakpoint.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/addresses.h"
#include "capture/common/errors.h"
#include "capture/linux/perf/backend.h"
#include "capture/linux/perf/sideband.h"

namespace ptkit::capture {

namespace {

constexpr std::array<const char*, 2> kTracing{"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"};
constexpr const char* kDelivered = "events/signal/signal_deliver/id";
using base::kKernelHalf;

base::Failure breakpoint_error(const Breakpoint& breakpoint, int error) {
  if (error == ENOSPC || error == EBUSY) {
    return unsupported(
        "triggers: a processor has four breakpoints, and they are taken (debuggers use them, too); give "
        "fewer triggers");
  }
  if (error == EACCES || error == EPERM) {
    return unsupported(breakpoint.signal != 0
                           ? "triggers: not permitted to see signals; run as root, or with CAP_PERFMON"
                           : "triggers: not permitted to set a breakpoint; run as root, or with CAP_PERFMON");
  }
  return unsupported(std::string("triggers: the kernel does not watch for this: ") + std::strerror(error));
}

// The ID of the tracepoint; 0: tracefs cannot be read.
std::uint64_t delivered_id(const PerfPort& port) {
  for (const char* folder : kTracing) {
    const std::string text = port.read(std::string(folder) + kDelivered).value_or("");
    std::uint64_t id = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), id).ec == std::errc()) return id;
  }
  return 0;
}

perf_event_attr breakpoint_attr(const perf_event_attr& unit, const Breakpoint& breakpoint,
                                std::uint64_t signal_id) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.sample_type = unit.sample_type;
  attr.sample_id_all = attr.disabled = attr.exclude_hv = 1;
  attr.sample_period = 1;
  attr.wakeup_events = 1;
  if (breakpoint.signal != 0) {
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = signal_id;
    return attr;
  }
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_type = HW_BREAKPOINT_X;
  attr.bp_addr = breakpoint.address;
  attr.bp_len = sizeof(long);
  attr.exclude_user = breakpoint.address >= kKernelHalf ? 1 : 0;
  attr.exclude_kernel = breakpoint.address < kKernelHalf ? 1 : 0;
  return attr;
}

}  // namespace

PerfBackend::Problem PerfBackend::set_breakpoints(const std::vector<Breakpoint>& breakpoints, int pid) {
  // With events of threads, the kernel follows the process (inherit).
  process_tree_.begin(options_.whole_cpus() ? pid : 0, options_.children);
  const bool signals = std::any_of(breakpoints.begin(), breakpoints.end(),
                                   [](const Breakpoint& breakpoint) { return breakpoint.signal != 0; });
  const std::uint64_t id = signals ? delivered_id(*port_) : 0;
  if (signals && id == 0) {
    return unsupported(
        "triggers: the kernel's tracepoints cannot be read; run as root, and mount tracefs (mount -t tracefs "
        "tracefs /sys/kernel/tracing)");
  }
  const perf_event_attr unit = dummy_event(trailer());
  for (const Breakpoint& breakpoint : breakpoints) {
    for (const Opened& one : opened_) {
      if (one.secondary) continue;
      if (auto failure = open_breakpoint(breakpoint_attr(unit, breakpoint, id), one, breakpoint))
        return failure;
    }
  }
  return {};
}

PerfBackend::Problem PerfBackend::open_breakpoint(const perf_event_attr& attr, const Opened& one,
                                                  const Breakpoint& breakpoint) {
  perf_event_attr mine = attr;
  mine.inherit = one.tid >= 0 && one.cpu >= 0 ? 1 : 0;
  mine.inherit_thread = mine.inherit != 0 && !options_.children ? 1 : 0;
  const int event = port_->open(mine, one.tid, one.cpu);
  if (event == -ESRCH) return {};
  if (event == -EMFILE || event == -ENFILE) return open_error(*port_, scope(), -event).failure();
  if (event < 0) return breakpoint_error(breakpoint, -event);
  breakpoint_events_.push_back(event);
  if (breakpoint.signal != 0) {
    const std::string filter = "sig == " + std::to_string(breakpoint.signal);
    const auto text = reinterpret_cast<std::uintptr_t>(filter.c_str());
    if (const int error = port_->request(event, PERF_EVENT_IOC_SET_FILTER, text); error != 0)
      return breakpoint_error(breakpoint, error);
  }
  std::uint64_t id = 0;
  const int error = port_->request(event, PERF_EVENT_IOC_ID, reinterpret_cast<std::uintptr_t>(&id));
  if (error != 0) return breakpoint_error(breakpoint, error);
  triggers_[id] = breakpoint;
  return set_output(event, buffers_[one.buffer]);
}

// Events of whole CPUs fire in every process. A kernel address counts in all of them: its code is shared.
void PerfBackend::on_fired_event(const FiredEvent& hit) {
  const auto at = triggers_.find(hit.event);
  if (at == triggers_.end()) return;
  const Breakpoint& breakpoint = at->second;
  const bool counts = breakpoint.signal != 0
                          ? process_tree_.has(hit.pid)
                          : breakpoint.address >= kKernelHalf || process_tree_.has_program(hit.pid, hit.tsc);
  if (counts) fired_.push_back(breakpoint.trigger);
}

}  // namespace ptkit::capture
