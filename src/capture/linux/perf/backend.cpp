#include "capture/linux/perf/backend.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "capture/common/cpu_info.h"
#include "capture/common/errors.h"
#include "capture/linux/perf/branches.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

PerfScope PerfBackend::scope() const {
  return {options_.levels.kernel, options_.whole_cpus(), options_.pid, -1, attr_.config, options_.recorded()};
}

PerfBackend::Problem PerfBackend::prepare(const RecordOptions& options,
                                          std::vector<trace::Warning>& warnings) {
  options_ = options;
  port_ = open_();
  // The kernel's own thread that only the first namespace shows.
  if (options.whole_cpus() && port_->read("/proc/2/comm").value_or("") != "kthreadd")
    warnings.push_back(warn(WarningCode::PID_NAMESPACE));
  return records(Recorded::PACKETS) ? prepare_packets(warnings) : prepare_branches();
}

PerfBackend::Problem PerfBackend::prepare_branches() {
  auto attr = branch_event(options_, *port_);
  if (!attr.ok()) return attr.failure();
  attr_ = attr.value();
  pmu_.cpus = online_cpus(*port_);
  if (records(Recorded::LBR)) cores_ = core_kinds(*port_);
  return check_cpus(options_, pmu_.cpus);
}

PerfBackend::Problem PerfBackend::prepare_packets(std::vector<trace::Warning>& warnings) {
  PerfError error;
  auto pmu = find_pmu(*port_, error);
  if (!pmu) return error.failure();
  pmu_ = std::move(*pmu);
  auto event = perf_event(options_, pmu_);
  if (!event.ok()) return event.failure();
  event_ = event.value();
  attr_ = event_attr(event_, pmu_.type);
  const auto tsc = std::uint64_t{1} << PT_CTL_TSC_EN;
  if ((event_.config & tsc) == 0 && !options_.per_thread)
    warnings.push_back(warn(WarningCode::NO_TSC_PACKETS));
  return check_filters(options_, pmu_.filters);
}

std::vector<trace::Stream> PerfBackend::streams() const {
  std::vector<trace::Stream> out;
  for (const PerfBuffer& buffer : buffers_) {
    trace::Stream& stream = out.emplace_back();
    if (!records(Recorded::PACKETS)) {
      stream.kind = trace::StreamKind::BRANCH_RECORDS;
      stream.switches_by_offset = true;
    }
    if (buffer.cpu() != kAll) {
      stream.cpu = buffer.cpu();
      stream.name = "cpu " + std::to_string(buffer.cpu());
    } else {
      stream.pid = pid_;
      stream.tid = buffer.tid();
      stream.name = "thread " + std::to_string(buffer.tid());
    }
  }
  return out;
}

trace::Configuration PerfBackend::configuration() const {
  trace::Configuration out;
  if (records(Recorded::PACKETS))
    out = recorded_configuration(event_, pmu_);
  else
    out.cpu = this_processor();
  out.ranges_known = true;
  for (std::size_t i = 0; i < std::min(filters_.size(), out.ranges.size()); ++i) {
    const bool stops = filters_[i].kind == FilterRequest::Kind::TRACESTOP;
    out.ranges[i] = {stops ? trace::RangeKind::TRACE_STOP : trace::RangeKind::FILTER, filters_[i].first,
                     filters_[i].last};
    out.rtit_ctl |= static_cast<std::uint64_t>(out.ranges[i].kind)
                    << (PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * i);
  }
  if (!buffers_.empty() && buffers_.front().clock().perf_time_known) {
    const trace::Clock& clock = buffers_.front().clock();
    out.clock.perf_time_known = true;
    out.clock.time_shift = clock.time_shift;
    out.clock.time_mult = clock.time_mult;
    out.clock.time_zero = clock.time_zero;
  }
  return out;
}

PerfBackend::Problem PerfBackend::enable_breakpoints() {
  for (const int event : breakpoint_events_) {
    if (const int error = port_->request(event, PERF_EVENT_IOC_ENABLE, 0); error != 0)
      return unsupported(std::string("triggers: perf's event cannot begin: ") + std::strerror(error));
  }
  return {};
}

PerfBackend::Problem PerfBackend::start() {
  running_ = true;
  return request_all(PERF_EVENT_IOC_ENABLE, "begin");
}

PerfBackend::Problem PerfBackend::request_all(unsigned long number, const char* what) {
  for (const Opened& one : opened_) {
    const int error = port_->request(one.event, number, 0);
    if (error != 0)
      return unsupported(std::string("perf's event cannot ") + what + ": " + std::strerror(error));
  }
  return {};
}

void PerfBackend::request_writers(std::size_t buffer, unsigned long number) {
  for (const int event : writers_[buffer]) static_cast<void>(port_->request(event, number, 0));
}

// Enables events that the kernel disabled because their buffer was full (drawn in buffer.h).
PerfBackend::Problem PerfBackend::restart_if_full(std::size_t buffer, BundleOutput& output,
                                                  std::vector<SidebandRecord>& records) {
  const PerfBuffer::DrainResult last_drain = buffers_[buffer].last_drain();
  if (!running_) return {};
  if (last_drain.full) {
    request_writers(buffer, PERF_EVENT_IOC_DISABLE);
    // Disabling made the events write their last data. The next branch does not continue there.
    if (auto failure = drain_one(buffer, output, records)) return failure;
    buffers_[buffer].interrupt();
  }
  if (last_drain.full || (last_drain.was_full && last_drain.had_trace))
    request_writers(buffer, PERF_EVENT_IOC_ENABLE);
  return {};
}

PerfBackend::Problem PerfBackend::pause() {
  running_ = false;
  return request_all(PERF_EVENT_IOC_DISABLE, "pause");
}

PerfBackend::Problem PerfBackend::resume() {
  running_ = true;
  for (PerfBuffer& buffer : buffers_) buffer.interrupt();
  return request_all(PERF_EVENT_IOC_ENABLE, "go on");
}

// CPUs that came online after the events were opened are not traced.
void PerfBackend::warn_of_new_cpus() {
  if (options_.per_thread || !options_.cpus.numbers.empty()) return;
  std::string names;
  for (const std::uint32_t cpu : online_cpus(*port_)) {
    if (std::find(pmu_.cpus.begin(), pmu_.cpus.end(), cpu) == pmu_.cpus.end())
      names += (names.empty() ? "" : ", ") + std::to_string(cpu);
  }
  if (!names.empty()) warnings_.push_back(warn(WarningCode::CPUS_CAME_ONLINE, names));
}

void PerfBackend::stop() {
  running_ = false;
  warn_of_new_cpus();
  for (const Opened& one : opened_) static_cast<void>(port_->request(one.event, PERF_EVENT_IOC_DISABLE, 0));
  for (const auto* events : {&sideband_events_, &breakpoint_events_}) {
    for (const int event : *events) static_cast<void>(port_->request(event, PERF_EVENT_IOC_DISABLE, 0));
  }
}

PerfBackend::Problem PerfBackend::drain_one(std::size_t buffer, BundleOutput& output,
                                            std::vector<SidebandRecord>& records) {
  std::vector<SystemRecord> fresh;
  if (auto failure = buffers_[buffer].drain(output, fresh, unresolved_events_)) return failure;
  for (SystemRecord& record : fresh) {
    process_tree_.take(record);
    if (record.kind == SystemRecord::Kind::EXEC) {
      for (PerfBuffer& other : buffers_) other.forget(record.pid, record.tsc);
    }
    records.emplace_back(std::move(record), buffers_[buffer].stream());
  }
  return {};
}

PerfBackend::Problem PerfBackend::drain(BundleOutput& output, std::vector<SidebandRecord>& records) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (auto failure = drain_one(i, output, records)) return failure;
    if (auto failure = restart_if_full(i, output, records)) return failure;
  }
  // After all buffers: the FORK record of the process may be in the ring of another CPU.
  for (const FiredEvent& hit : std::exchange(unresolved_events_, {})) on_fired_event(hit);
  return {};
}

// PERF_EVENT_IOC_DISABLE has made the kernel write AUX records for all AUX data.
PerfBackend::Problem PerfBackend::collect(BundleOutput& output, std::vector<SidebandRecord>& records) {
  if (auto failure = drain(output, records)) return failure;
  std::vector<SystemRecord> fresh;
  for (PerfBuffer& buffer : buffers_) {
    fresh.clear();
    buffer.collect(output, fresh);
    for (SystemRecord& record : fresh) records.emplace_back(std::move(record), buffer.stream());
  }
  return {};
}

void PerfBackend::wait(int handle, bool paused, std::chrono::milliseconds limit) {
  static_cast<void>(paused);  // a disabled event is never ready
  // poll() of any event of a buffer reports data in the buffer.
  std::vector<int> files;
  for (const std::vector<int>& writers : writers_) {
    if (!writers.empty()) files.push_back(writers.back());
  }
  if (handle >= 0) files.push_back(handle);
  const std::vector<int> over = port_->wait(files, limit);
  if (over.empty()) return;
  // POLLHUP: all threads of the event have exited, and the event is ready forever.
  const std::set<int> gone(over.begin(), over.end());
  for (std::vector<int>& writers : writers_) {
    if (!writers.empty() && gone.count(writers.back()) != 0) writers.pop_back();
  }
}

std::uint64_t PerfBackend::trace_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const PerfBuffer& buffer : buffers_) sum += buffer.counts().bytes;
  return sum;
}

std::uint64_t PerfBackend::lost_records() const noexcept {
  std::uint64_t sum = 0;
  for (const PerfBuffer& buffer : buffers_) sum += buffer.counts().lost_records;
  return sum;
}

std::vector<trace::Warning> PerfBackend::warnings() const {
  std::vector<trace::Warning> out = warnings_;
  PerfBuffer::Counts all;
  for (const PerfBuffer& buffer : buffers_) {
    const PerfBuffer::Counts& counts = buffer.counts();
    const std::string label = buffer.cpu() != kAll ? "CPU " + std::to_string(buffer.cpu())
                                                   : "Thread " + std::to_string(buffer.tid());
    if (counts.stops != 0) out.push_back(warn(WarningCode::AUX_TRUNCATED, counts.stops).at(label));
    if (counts.gaps != 0) out.push_back(warn(WarningCode::AUX_PARTIAL, counts.gaps).at(label));
    if (counts.collisions != 0) out.push_back(warn(WarningCode::AUX_COLLISION, counts.collisions).at(label));
    all.lost_records += counts.lost_records;
    all.bad_records += counts.bad_records;
    all.throttled += counts.throttled;
    for (const auto& [type, count] : counts.unknown) all.unknown[type] += count;
  }
  if (all.lost_records != 0) out.push_back(warn(WarningCode::SIDEBAND_LOST, all.lost_records));
  if (all.throttled != 0) out.push_back(warn(WarningCode::SAMPLES_THROTTLED, all.throttled));
  if (all.bad_records != 0) out.push_back(warn(WarningCode::RECORDS_INVALID, all.bad_records));
  for (const auto& [type, count] : all.unknown)
    out.push_back(warn(WarningCode::RECORD_TYPE_UNKNOWN, count, type));
  if (!buffers_.empty() && !buffers_.front().clock().perf_time_known)
    out.push_back(warn(WarningCode::CLOCK_NOT_TSC));
  return out;
}

}  // namespace ptkit::capture
