#include "capture/driver_units.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "capture/driver_config.h"
#include "capture/refusals.h"

namespace ptkit::capture {

namespace {}  // namespace

DriverUnits::Problem DriverUnits::prepare(const RecordOptions& options, std::vector<std::string>& warnings) {
  auto port = open_();
  if (!port.ok()) return port.failure();
  first_ = std::move(port.value());
  auto query = query_driver(*first_);
  if (!query.ok()) return query.failure();
  query_ = query.value();
  auto config = driver_config(options, query_, warnings);
  if (!config.ok()) return config.failure();
  config_ = config.value();
  cpus_ = options.hardware.cpus;
  return check_filters(options, capabilities_of(query_).ranges());
}

DriverUnits::Problem DriverUnits::configure(int pid, const std::vector<FilterPlace>& filters) {
  const unsigned most = std::min<unsigned>(capabilities_of(query_).ranges(), PTKIT_MOST_RANGES);
  if (filters.size() > most) return too_many_filters(filters.size(), most);
  for (const FilterPlace& filter : filters) {
    const bool stops = filter.kind == FilterRequest::Kind::TRACESTOP;
    config_.ranges[config_.range_count++] = {
        filter.first, filter.last,
        stops ? std::uint32_t{PTKIT_RANGE_STOP} : std::uint32_t{PTKIT_RANGE_FILTER}, 0};
  }
  config_.process = pid;
  config_.target = cpus_.empty() ? PTKIT_TARGET_ALL : PTKIT_TARGET_CPU;
  if (cpus_.empty()) return add(std::move(first_), config_);
  for (const std::uint32_t cpu : cpus_) {
    if (first_ == nullptr) {
      auto port = open_();
      if (!port.ok()) return port.failure();
      first_ = std::move(port.value());
    }
    config_.cpu = cpu;
    if (auto failure = add(std::move(first_), config_)) return failure;
  }
  return {};
}

std::vector<trace::Stream> DriverUnits::streams() const {
  std::vector<trace::Stream> out;
  for (const DriverBuffer& buffer : buffers_) {
    trace::Stream& stream = out.emplace_back();
    stream.cpu = buffer.cpu();
    stream.name = "cpu " + std::to_string(buffer.cpu());
  }
  return out;
}

trace::Configuration DriverUnits::configuration() const { return recorded_configuration(config_, query_); }

DriverUnits::Problem DriverUnits::add(std::unique_ptr<DriverPort> port, ptkit_config config) {
  if (const int error = port->request(PTKIT_CONFIGURE, &config); error != 0) return refusal(error, config);
  const std::size_t before = buffers_.size();
  for (std::uint32_t cpu = 0; cpu < query_.cpus; ++cpu) {
    auto buffer = DriverBuffer::open(*port, config, cpu);
    if (!buffer.ok()) return buffer.failure();
    if (buffer.value()) buffers_.push_back(std::move(*buffer.value()));
  }
  if (buffers_.size() == before) return unsupported("cpus: the processor is not there, or offline");
  ports_.push_back(std::move(port));
  return {};
}

DriverUnits::Problem DriverUnits::tell(unsigned long number, const char* what) {
  for (const auto& port : ports_) {
    const int error = port->request(number, nullptr);
    if (error == 0) continue;
    return unsupported(std::string("the driver cannot ") + what + ": " + std::strerror(error));
  }
  return {};
}

DriverUnits::Problem DriverUnits::start() {
  for (const auto& port : ports_) {
    const int error = port->request(PTKIT_START, nullptr);
    if (error == 0) continue;
    stop();
    if (error == EBUSY) {
      return unsupported(
          "somebody else traces already (another ptkit, or perf with intel_pt): a processor has but one "
          "trace "
          "unit; end that first");
    }
    if (error == EIO) {
      return unsupported(
          "a write to the trace unit's registers faulted; a hypervisor may own it (VMX), and the kernel's "
          "log "
          "says more");
    }
    if (error == ESRCH) return base::Failure{base::Status::BAD_CONFIG, 0, "pid: the process has ended"};
    return unsupported(std::string("the driver cannot start: ") + std::strerror(error));
  }
  return {};
}

DriverUnits::Problem DriverUnits::pause() { return tell(PTKIT_PAUSE, "pause"); }
DriverUnits::Problem DriverUnits::resume() { return tell(PTKIT_RESUME, "go on"); }

void DriverUnits::stop() {
  for (const auto& port : ports_) static_cast<void>(port->request(PTKIT_STOP, nullptr));
}

DriverUnits::Problem DriverUnits::drain(BundleOutput& output, std::vector<ToldRecord>& records) {
  std::vector<SystemRecord> some;
  for (DriverBuffer& buffer : buffers_) {
    some.clear();
    if (auto failure = buffer.drain(output, some)) return failure;
    for (SystemRecord& record : some) records.emplace_back(std::move(record), buffer.stream());
  }
  return {};
}

DriverUnits::Problem DriverUnits::collect(BundleOutput& output, std::vector<ToldRecord>& records) {
  static_cast<void>(records);
  for (DriverBuffer& buffer : buffers_) {
    if (auto failure = buffer.collect(output)) return failure;
  }
  return {};
}

void DriverUnits::wait(int handle, bool paused, std::chrono::milliseconds limit) {
  std::vector<pollfd> files;
  if (handle >= 0) files.push_back({handle, POLLIN, 0});
  // One that pauses is always ready.
  for (const auto& port : ports_) {
    if (!paused) files.push_back({port->file(), POLLIN, 0});
  }
  static_cast<void>(::poll(files.data(), files.size(), static_cast<int>(limit.count())));
}

std::vector<std::string> DriverUnits::warnings() const {
  std::vector<std::string> out;
  std::uint64_t lost = 0;
  std::uint64_t bad = 0;
  bool lost_children = false;
  for (const DriverBuffer& buffer : buffers_) {
    const DriverBuffer::Counts& counts = buffer.counts();
    const std::string who = "Processor " + std::to_string(buffer.cpu()) + ": ";
    lost += counts.lost_records;
    bad += counts.bad_bytes;
    lost_children = lost_children || counts.lost_children;
    if (counts.stops != 0) {
      out.push_back(who + "the buffer was full " + plural(counts.stops, "time") +
                    ", and trace is missing there; use a larger buffer (buffer, --buffer), or trace less.");
    }
    if (counts.cleared) {
      out.push_back(who +
                    "somebody else switched tracing off (a hypervisor that began, or another tracer): trace "
                    "is missing from there on.");
    }
    if (counts.error != 0)
      out.push_back(who + "tracing failed (" + std::strerror(counts.error) + ") and ended early.");
  }
  if (lost != 0) {
    out.push_back(plural(lost, "record") +
                  " of switches, mappings or names were lost where their ring was full: threads may be "
                  "confused, and code may be missing.");
  }
  if (lost_children)
    out.emplace_back("The kernel had no memory to follow some children: they were not traced.");
  if (bad != 0)
    out.push_back(plural(bad, "byte") + " of the driver's records make no sense and were left out.");
  return out;
}

std::uint64_t DriverUnits::trace_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const DriverBuffer& buffer : buffers_) sum += buffer.counts().bytes;
  return sum;
}

std::uint64_t DriverUnits::lost_records() const noexcept {
  std::uint64_t sum = 0;
  for (const DriverBuffer& buffer : buffers_) sum += buffer.counts().lost_records;
  return sum;
}

bool DriverUnits::failed() const noexcept {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [](const DriverBuffer& buffer) { return buffer.counts().error != 0; });
}

}  // namespace ptkit::capture
