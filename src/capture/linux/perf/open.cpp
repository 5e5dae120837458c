// Opens events for threads and CPUs, and maps their buffers.
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "capture/common/errors.h"
#include "capture/linux/perf/backend.h"
#include "capture/linux/perf/sideband.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

constexpr int kMaxThreadScans = 10;  // of /proc/PID/task, as threads may begin meanwhile
constexpr std::uint64_t kMostWatermark = std::uint64_t{1} << 30U;
// BTS of a whole CPU: the thread of an AUX record's data is known only if a single thread ran meanwhile. A
// low watermark keeps AUX records short.
constexpr std::uint64_t kBtsWatermark = std::uint64_t{64} << 10U;

// A buffer belongs to a CPU, or to a thread on all CPUs.
std::pair<int, int> buffer_key(int tid, int cpu) { return {cpu, cpu != kAll ? kAll : tid}; }

formats::perf::Attr records_attr(const perf_event_attr& attr) {
  formats::perf::Attr out;
  out.type = attr.type;
  out.config = attr.config;
  out.sample_type = attr.sample_type;
  out.branch_type = attr.branch_sample_type;
  out.flags = std::uint64_t{1} << formats::perf::kSampleIdAll;
  return out;
}

}  // namespace

void PerfBackend::close_all() {
  for (const Opened& one : opened_) port_->close(one.event);
  opened_.clear();
}

PerfBackend::Problem PerfBackend::open_all(int pid) {
  busy_threads_.clear();
  threads_missed_ = false;
  if (pid != 0) return open_threads(pid);
  const std::vector<std::uint32_t>& chosen = options_.cpus.numbers;
  for (const std::uint32_t cpu : chosen.empty() ? pmu_.cpus : chosen) {
    if (auto failure = open_one(kAll, static_cast<int>(cpu), false)) return failure;
  }
  return {};
}

// A thread that begins meanwhile inherits the event of its parent, or the next scan finds the thread.
PerfBackend::Problem PerfBackend::open_threads(int pid) {
  std::set<int> seen;
  bool any = true;
  for (int look = 0; look < kMaxThreadScans && any; ++look) {
    any = false;
    for (const int tid : port_->threads(pid)) {
      if (!seen.insert(tid).second) continue;
      any = true;
      if (options_.per_thread) {
        if (auto failure = open_one(tid, kAll, look > 0)) return failure;
        continue;
      }
      for (const std::uint32_t cpu : pmu_.cpus) {
        if (auto failure = open_one(tid, static_cast<int>(cpu), look > 0)) return failure;
      }
    }
  }
  threads_missed_ = any;
  if (opened_.empty()) return open_error(*port_, scope(), busy_threads_.empty() ? ESRCH : EBUSY).failure();
  return {};
}

// Warns of threads of the process that are not traced.
void PerfBackend::warn_of_untraced_threads() {
  if (!busy_threads_.empty()) {
    constexpr std::size_t kMostNames = 10;
    std::string names;
    std::size_t count = 0;
    for (const int tid : busy_threads_) {
      if (count++ == kMostNames) break;
      names += (names.empty() ? "" : ", ") + std::to_string(tid);
    }
    if (busy_threads_.size() > kMostNames) names += ", ...";
    warnings_.push_back(warn(WarningCode::THREADS_BUSY, busy_threads_.size(), pid_, names));
  }
  if (threads_missed_) warnings_.push_back(warn(WarningCode::THREADS_NOT_FOUND, pid_));
}

// The event cycles is a different event for each core type.
PerfBackend::Problem PerfBackend::open_one(int tid, int cpu, bool may_be_inherited) {
  for (const perf_event_attr& attr : events_on(attr_, cores_, cpu)) {
    if (auto failure = open_event(attr, tid, cpu, may_be_inherited)) return failure;
  }
  return {};
}

PerfBackend::Problem PerfBackend::open_event(perf_event_attr attr, int tid, int cpu, bool may_be_inherited) {
  const bool inherits = tid != kAll && cpu != kAll;
  attr.inherit = inherits ? 1 : 0;
  attr.inherit_thread = inherits && !options_.children ? 1 : 0;
  // The kernel interrupts and wakes up the reader once for so many bytes.
  if (!sizes_.ring) {
    const std::uint64_t most = records(Recorded::BTS) && tid == kAll ? kBtsWatermark : kMostWatermark;
    attr.aux_watermark = static_cast<std::uint32_t>(std::min(sizes_.trace / 4, most));
  }
  const int event = port_->open(attr, tid, cpu);
  if (event >= 0) {
    const bool secondary = !opened_.empty() && opened_.back().tid == tid && opened_.back().cpu == cpu;
    opened_.push_back({event, tid, cpu, secondary});
    return {};
  }
  if (tid != kAll && event == -ESRCH) return {};  // the thread has exited
  if (tid != kAll && event == -EBUSY) {
    // A thread that began meanwhile has inherited an event from its parent. Any other thread has an event of
    // another tracer.
    if (!may_be_inherited || !inherits) busy_threads_.insert(tid);
    return {};
  }
  PerfScope where = scope();
  where.cpu = cpu;
  if (event == -EINVAL) return invalid_error(*port_, attr, tid, cpu, where).failure();
  return open_error(*port_, where, -event).failure();
}

// ---- buffers

// The number of buffers that the opened events need.
std::size_t PerfBackend::count_buffers() const {
  std::set<std::pair<int, int>> keys;
  for (const Opened& one : opened_) keys.insert(buffer_key(one.tid, one.cpu));
  return keys.size();
}

// Maps all buffers. Returns 0, or the errno; then no buffer is mapped.
int PerfBackend::map_buffers() {
  std::map<std::pair<int, int>, std::size_t> numbers;
  for (Opened& one : opened_) {
    const auto [at, fresh] = numbers.try_emplace(buffer_key(one.tid, one.cpu), buffers_.size());
    one.buffer = at->second;
    if (!fresh) continue;
    int error = 0;
    auto buffer = PerfBuffer::map(*port_, one.event, one.tid, one.cpu, sizes_, error);
    if (!buffer) {
      for (PerfBuffer& other : buffers_) other.unmap(*port_);
      buffers_.clear();
      return error;
    }
    buffers_.push_back(std::move(*buffer));
  }
  return 0;
}

// All events of a CPU or thread write the buffer of the first one (PERF_EVENT_IOC_SET_OUTPUT).
PerfBackend::Problem PerfBackend::redirect_to_buffers() {
  writers_.assign(buffers_.size(), {});
  for (const Opened& one : opened_) {
    const PerfBuffer& buffer = buffers_[one.buffer];
    writers_[one.buffer].push_back(one.event);
    if (buffer.event() == one.event) continue;
    if (auto failure = set_output(one.event, buffer)) return failure;
  }
  return {};
}

PerfBackend::Problem PerfBackend::set_output(int event, const PerfBuffer& buffer) {
  const auto to = static_cast<std::uintptr_t>(buffer.event());
  const int error = port_->request(event, PERF_EVENT_IOC_SET_OUTPUT, to);
  if (error == 0) return {};
  return unsupported(std::string("perf's events cannot share a buffer: ") + std::strerror(error));
}

// ---- records

// Dummy events share a ring with tracing events, so their records have the same trailer.
std::uint64_t PerfBackend::trailer() const {
  return attr_.sample_type & ~std::uint64_t{PERF_SAMPLE_BRANCH_STACK};
}

PerfBackend::Problem PerfBackend::open_sideband() {
  const bool packets = records(Recorded::PACKETS);
  const bool store = records(Recorded::BTS);
  for (PerfBuffer& buffer : buffers_) {
    buffer.set_attr(records_attr(attr_), packets && !options_.per_thread);
    if (store) buffer.set_bts(!options_.whole_cpus(), options_.levels.kernel);
  }
  // SWITCH records are needed only where the data itself has no thread. Samples, and AUX records of BTS of
  // single threads, have a pid and a tid; with `per_thread`, a buffer has the packets of one thread.
  const bool switches = packets ? !options_.per_thread : store && options_.whole_cpus();
  for (const Opened& one : opened_) {
    if (one.secondary) continue;
    if (auto failure = open_dummy_for(one, switches)) return failure;
    if (store) restart_at_exec(one);
  }
  return options_.levels.kernel ? open_kernel_sideband() : Problem();
}

// Sideband records: context switches, mappings, names, threads that begin and end.
PerfBackend::Problem PerfBackend::open_dummy_for(const Opened& one, bool switches) {
  perf_event_attr attr = sideband_event(trailer());
  attr.inherit = one.tid != kAll && one.cpu != kAll ? 1 : 0;
  attr.inherit_thread = attr.inherit != 0 && !options_.children ? 1 : 0;
  attr.context_switch = switches ? 1 : 0;
  const int event = open_sideband_event(*port_, attr, one.tid, one.cpu);
  if (event == -ESRCH) return {};
  if (event == -EINVAL) {
    return unsupported(
        "this kernel has no sideband records as ptkit needs them (context_switch, comm_exec, mmap2); use "
        "Linux 4.3 or newer");
  }
  if (event < 0) return open_error(*port_, scope(), -event).failure();
  sideband_events_.push_back(event);
  return set_output(event, buffers_[one.buffer]);
}

// An event with enable_on_exec makes the kernel reschedule all events of the thread at exec(), which ends the
// AUX record (perf_event_enable_on_exec() in kernel/events/core.c). Otherwise an AUX record may have branches
// of the programs before and after exec().
void PerfBackend::restart_at_exec(const Opened& one) {
  if (one.tid == kAll) return;
  perf_event_attr attr = dummy_event(trailer());
  attr.disabled = attr.enable_on_exec = 1;
  attr.inherit = one.cpu != kAll ? 1 : 0;
  attr.inherit_thread = attr.inherit != 0 && !options_.children ? 1 : 0;
  const int event = port_->open(attr, one.tid, one.cpu);
  if (event >= 0) sideband_events_.push_back(event);
  if (event >= 0 || event == -ESRCH || std::exchange(warned_of_exec_, true)) return;
  warnings_.push_back(warn(WarningCode::EXEC_NOT_SPLIT, std::strerror(-event)));
}

// The kernel changes its code while any thread runs, so KSYMBOL and TEXT_POKE need events of whole CPUs.
PerfBackend::Problem PerfBackend::open_kernel_sideband() {
  bool all = true;
  for (const PerfBuffer& buffer : buffers_) {
    perf_event_attr attr = dummy_event(trailer());
    attr.ksymbol = attr.text_poke = 1;
    const int event = buffer.cpu() == kAll ? -EINVAL : port_->open(attr, kAll, buffer.cpu());
    if (event == -EMFILE || event == -ENFILE) return open_error(*port_, scope(), -event).failure();
    all = all && event >= 0;
    if (event < 0) continue;
    sideband_events_.push_back(event);
    all = all && !set_output(event, buffer);
  }
  // Events of chosen CPUs miss what others change.
  reports_kernel_code_ = all && options_.cpus.numbers.empty();
  if (!all) warnings_.push_back(warn(WarningCode::KERNEL_CHANGES_UNKNOWN));
  return {};
}

}  // namespace ptkit::capture
