#include "capture/perf_units.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "capture/perf_branches.h"
#include "capture/processor.h"
#include "capture/refusals.h"

namespace ptkit::capture {

namespace {

constexpr int kAll = -1;

}  // namespace

PerfScope PerfUnits::scope() const {
  const HardwareOptions& hardware = options_.hardware;
  return {hardware.kernel, hardware.whole_cpus(), hardware.pid, -1, attr_.config, hardware.recorded};
}

PerfUnits::Problem PerfUnits::prepare(const RecordOptions& options, std::vector<std::string>& warnings) {
  options_ = options;
  port_ = open_();
  // The kernel's own thread that only the first namespace shows.
  if (options.hardware.whole_cpus() && port_->read("/proc/2/comm").value_or("") != "kthreadd") {
    warnings.emplace_back(
        "This looks like a container with process numbers of its own: what runs outside of it has none here, "
        "and its code may be taken for the kernel's or for another process's; record in the host's namespace "
        "(--pid=host).");
  }
  return records(Recorded::PACKETS) ? prepare_packets(warnings) : prepare_branches();
}

PerfUnits::Problem PerfUnits::prepare_branches() {
  auto attr = branch_event(options_, *port_);
  if (!attr.ok()) return attr.failure();
  attr_ = attr.value();
  unit_.cpus = online_cpus(*port_);
  if (records(Recorded::STACKS)) cores_ = core_kinds(*port_);
  return check_cpus(options_, unit_.cpus);
}

PerfUnits::Problem PerfUnits::prepare_packets(std::vector<std::string>& warnings) {
  PerfRefusal refusal;
  auto unit = find_unit(*port_, refusal);
  if (!unit) return refusal.failure();
  unit_ = std::move(*unit);
  auto event = perf_event(options_, unit_);
  if (!event.ok()) return event.failure();
  event_ = event.value();
  attr_ = event_attr(event_, unit_.type);
  const auto tsc = std::uint64_t{1} << PT_CTL_TSC_EN;
  if ((event_.config & tsc) == 0 && !options_.hardware.per_thread)
    warnings.emplace_back("Without TSC packets threads cannot be told apart.");
  return check_filters(options_, unit_.filters);
}

std::vector<trace::Stream> PerfUnits::streams() const {
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

trace::Configuration PerfUnits::configuration() const {
  trace::Configuration out;
  if (records(Recorded::PACKETS))
    out = recorded_configuration(event_, unit_);
  else
    out.cpu = this_processor();
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

PerfUnits::Problem PerfUnits::notice() {
  for (const int event : watches_) {
    if (const int error = port_->request(event, PERF_EVENT_IOC_ENABLE, 0); error != 0)
      return unsupported(std::string("triggers: perf's event cannot begin: ") + std::strerror(error));
  }
  return {};
}

PerfUnits::Problem PerfUnits::start() {
  running_ = true;
  return tell(PERF_EVENT_IOC_ENABLE, "begin");
}

PerfUnits::Problem PerfUnits::tell(unsigned long number, const char* what) {
  for (const Opened& one : opened_) {
    const int error = port_->request(one.event, number, 0);
    if (error != 0)
      return unsupported(std::string("perf's event cannot ") + what + ": " + std::strerror(error));
  }
  return {};
}

void PerfUnits::tell_writers(std::size_t buffer, unsigned long number) {
  for (const int event : writers_[buffer]) static_cast<void>(port_->request(event, number, 0));
}

// The kernel disables an event that has no room left: at once, some time later, when its thread is next taken
// off a processor, or never, though it traces no more. To disable and enable it helps but in the third case,
// which looks as if nothing was wrong: that one is enabled again as soon as its trace has been seen.
PerfUnits::Problem PerfUnits::go_on(std::size_t buffer, BundleOutput& output,
                                    std::vector<ToldRecord>& records) {
  const PerfBuffer::Found found = buffers_[buffer].found();
  if (!running_) return {};
  if (found.full) {
    tell_writers(buffer, PERF_EVENT_IOC_DISABLE);
    // What others have written meanwhile: what they write now does not go on there.
    if (auto failure = drain_one(buffer, output, records)) return failure;
    buffers_[buffer].interrupt();
  }
  if (found.full || (found.was_full && found.moved)) tell_writers(buffer, PERF_EVENT_IOC_ENABLE);
  return {};
}

PerfUnits::Problem PerfUnits::pause() {
  running_ = false;
  return tell(PERF_EVENT_IOC_DISABLE, "pause");
}

PerfUnits::Problem PerfUnits::resume() {
  running_ = true;
  for (PerfBuffer& buffer : buffers_) buffer.interrupt();
  return tell(PERF_EVENT_IOC_ENABLE, "go on");
}

// Nobody opened events for them.
void PerfUnits::tell_of_new_cpus() {
  const HardwareOptions& hardware = options_.hardware;
  if (hardware.per_thread || !hardware.cpus.empty()) return;
  std::string names;
  for (const std::uint32_t cpu : online_cpus(*port_)) {
    if (std::find(unit_.cpus.begin(), unit_.cpus.end(), cpu) == unit_.cpus.end())
      names += (names.empty() ? "" : ", ") + std::to_string(cpu);
  }
  if (!names.empty())
    warnings_.push_back("Processors came online while recording, and were not traced: " + names + ".");
}

void PerfUnits::stop() {
  running_ = false;
  tell_of_new_cpus();
  for (const Opened& one : opened_) static_cast<void>(port_->request(one.event, PERF_EVENT_IOC_DISABLE, 0));
  for (const auto* events : {&dummies_, &watches_}) {
    for (const int event : *events) static_cast<void>(port_->request(event, PERF_EVENT_IOC_DISABLE, 0));
  }
}

PerfUnits::Problem PerfUnits::drain_one(std::size_t buffer, BundleOutput& output,
                                        std::vector<ToldRecord>& records) {
  std::vector<SystemRecord> some;
  if (auto failure = buffers_[buffer].drain(output, some, happened_)) return failure;
  for (SystemRecord& record : some) {
    family_.take(record);
    if (record.kind == SystemRecord::Kind::EXEC) {
      for (PerfBuffer& other : buffers_) other.forget(record.pid, record.tsc);
    }
    records.emplace_back(std::move(record), buffers_[buffer].stream());
  }
  return {};
}

PerfUnits::Problem PerfUnits::drain(BundleOutput& output, std::vector<ToldRecord>& records) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (auto failure = drain_one(i, output, records)) return failure;
    if (auto failure = go_on(i, output, records)) return failure;
  }
  // Another processor may have told where the process that was there came from.
  for (const PerfHit& hit : std::exchange(happened_, {})) take_hit(hit);
  return {};
}

// Pausing made the kernel tell how far it came.
PerfUnits::Problem PerfUnits::collect(BundleOutput& output, std::vector<ToldRecord>& records) {
  if (auto failure = drain(output, records)) return failure;
  std::vector<SystemRecord> some;
  for (PerfBuffer& buffer : buffers_) {
    some.clear();
    buffer.collect(output, some);
    for (SystemRecord& record : some) records.emplace_back(std::move(record), buffer.stream());
  }
  return {};
}

void PerfUnits::wait(int handle, bool paused, std::chrono::milliseconds limit) {
  static_cast<void>(paused);  // who pauses is not ready
  // Whichever of its events is asked, a buffer answers.
  std::vector<int> files;
  for (const std::vector<int>& writers : writers_) {
    if (!writers.empty()) files.push_back(writers.back());
  }
  if (handle >= 0) files.push_back(handle);
  const std::vector<int> over = port_->wait(files, limit);
  if (over.empty()) return;
  // Events whose threads have all ended are ready for ever, and trace no more.
  const std::set<int> gone(over.begin(), over.end());
  for (std::vector<int>& writers : writers_) {
    if (!writers.empty() && gone.count(writers.back()) != 0) writers.pop_back();
  }
}

std::uint64_t PerfUnits::trace_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const PerfBuffer& buffer : buffers_) sum += buffer.counts().bytes;
  return sum;
}

std::uint64_t PerfUnits::lost_records() const noexcept {
  std::uint64_t sum = 0;
  for (const PerfBuffer& buffer : buffers_) sum += buffer.counts().lost_records;
  return sum;
}

std::vector<std::string> PerfUnits::warnings() const {
  std::vector<std::string> out = warnings_;
  PerfBuffer::Counts all;
  for (const PerfBuffer& buffer : buffers_) {
    const PerfBuffer::Counts& counts = buffer.counts();
    const std::string who = buffer.cpu() != kAll ? "Processor " + std::to_string(buffer.cpu()) + ": "
                                                 : "Thread " + std::to_string(buffer.tid()) + ": ";
    if (counts.stops != 0) {
      out.push_back(who + "the buffer was full " + plural(counts.stops, "time") +
                    ", and trace is missing there; use a larger buffer (buffer, --buffer), or trace less.");
    }
    if (counts.gaps != 0) {
      out.push_back(who + plural(counts.gaps, "piece") +
                    " of trace have gaps: a hypervisor used VMX there (KVM), and this processor cannot trace "
                    "through that; end virtual machines first.");
    }
    if (counts.collisions != 0)
      out.push_back(who + plural(counts.collisions, "piece") + " of trace collided with others.");
    all.lost_records += counts.lost_records;
    all.bad_records += counts.bad_records;
    all.held_back += counts.held_back;
    for (const auto& [type, count] : counts.unknown) all.unknown[type] += count;
  }
  if (all.lost_records != 0) {
    out.push_back(
        plural(all.lost_records, "record") +
        " of switches, mappings, samples or losses were lost where their ring was full: threads may be "
        "confused, and code may be missing.");
  }
  if (all.held_back != 0) {
    out.push_back("The kernel held samples back " + plural(all.held_back, "time") +
                  " (kernel.perf_event_max_sample_rate, kernel.perf_cpu_time_max_percent): branch stacks and "
                  "hits of triggers are missing there.");
  }
  if (all.bad_records != 0)
    out.push_back(plural(all.bad_records, "record") + " of perf make no sense and were left out.");
  for (const auto& [type, count] : all.unknown) {
    out.push_back(plural(count, "record") + " of type " + std::to_string(type) +
                  ", which this ptkit does not know, were skipped: the kernel is newer.");
  }
  if (!buffers_.empty() && !buffers_.front().clock().perf_time_known) {
    out.emplace_back(
        "The kernel's clock is not the TSC here (its clock source is another): who ran when, and what was "
        "mapped when, is known only roughly.");
  }
  return out;
}

}  // namespace ptkit::capture
