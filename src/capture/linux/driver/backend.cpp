#include "capture/linux/driver/backend.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "capture/common/errors.h"
#include "capture/device/config.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

constexpr std::chrono::seconds kBetweenAttempts{1};
constexpr std::uint64_t kKernelCodeBytes = std::uint64_t{128} << 10U;  // of each ring

}  // namespace

DriverBackend::Problem DriverBackend::prepare(const RecordOptions& options,
                                              std::vector<trace::Warning>& warnings) {
  auto port = open_();
  if (!port.ok()) return port.failure();
  unconfigured_ = std::move(port.value());
  auto query = query_driver(*unconfigured_);
  if (!query.ok()) return query.failure();
  query_ = query.value();
  auto config = driver_config(options, query_, warnings);
  if (!config.ok()) return config.failure();
  config_ = config.value();
  cpus_ = options.cpus.numbers;
  per_thread_ = options.per_thread;
  traces_kernel_ = options.levels.kernel;
  return check_filters(options, capabilities_of(query_).ranges());
}

DriverBackend::Problem DriverBackend::configure(int pid, const std::vector<ResolvedFilter>& filters) {
  const unsigned most = std::min<unsigned>(capabilities_of(query_).ranges(), PTKIT_MOST_RANGES);
  if (filters.size() > most) return too_many_filters(filters.size(), most);
  for (const ResolvedFilter& filter : filters) {
    const bool stops = filter.kind == FilterRequest::Kind::TRACESTOP;
    config_.ranges[config_.range_count++] = {
        filter.first, filter.last,
        stops ? std::uint32_t{PTKIT_RANGE_STOP} : std::uint32_t{PTKIT_RANGE_FILTER}, 0};
  }
  pid_ = pid;
  if (!per_thread_) config_.process = pid;
  if (auto failure = per_thread_ ? open_threads() : add_sessions()) return failure;
  if (has_sideband()) processes_.open(cpus_, config_.sideband_bytes);
  // Any CPU may change code that others execute.
  if (traces_kernel_) kernel_code_.open({}, kKernelCodeBytes);
  return {};
}

DriverBackend::Problem DriverBackend::add_sessions() {
  config_.target = cpus_.empty() ? PTKIT_TARGET_ALL : PTKIT_TARGET_CPU;
  if (cpus_.empty()) return add_session(std::move(unconfigured_), config_);
  for (const std::uint32_t cpu : cpus_) {
    auto port = new_port();
    if (!port.ok()) return port.failure();
    config_.cpu = cpu;
    if (auto failure = add_session(std::move(port.value()), config_)) return failure;
  }
  return {};
}

base::Result<std::unique_ptr<DriverPort>> DriverBackend::new_port() {
  if (unconfigured_ != nullptr) return std::move(unconfigured_);
  return open_();
}

std::vector<trace::Stream> DriverBackend::streams() const {
  std::vector<trace::Stream> out;
  for (const DriverBuffer& buffer : buffers_) {
    trace::Stream& stream = out.emplace_back();
    if (config_.output == PTKIT_OUTPUT_BTS) {
      stream.kind = trace::StreamKind::BRANCH_RECORDS;
      stream.switches_by_offset = true;
    }
    if (buffer.tid() != 0) {
      stream.pid = pid_;
      stream.tid = buffer.tid();
      stream.name = "thread " + std::to_string(buffer.tid());
      continue;
    }
    stream.cpu = buffer.cpu();
    stream.name = "cpu " + std::to_string(buffer.cpu());
  }
  return out;
}

trace::Configuration DriverBackend::configuration() const { return recorded_configuration(config_, query_); }

DriverBackend::Problem DriverBackend::add_session(std::unique_ptr<DriverPort> port, ptkit_config config) {
  if (const int error = port->request(PTKIT_CONFIGURE, &config); error != 0)
    return config_error(error, config);
  return add_buffers(std::move(port), config);
}

DriverBackend::Problem DriverBackend::add_buffers(std::unique_ptr<DriverPort> port,
                                                  const ptkit_config& config) {
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

DriverBackend::Problem DriverBackend::request_all(unsigned long number, const char* what) {
  for (const auto& port : ports_) {
    const int error = port->request(number, nullptr);
    if (error == 0) continue;
    return unsupported(std::string("the driver cannot ") + what + ": " + std::strerror(error));
  }
  return {};
}

DriverBackend::Problem DriverBackend::start_error(int error) const {
  if (error == EBUSY) {
    return unsupported(
        "another tracer is active (another ptkit, or perf with intel_pt): a processor has only one trace "
        "unit; stop that tracer first");
  }
  if (error == EIO) {
    return unsupported(
        "a write to the trace unit's registers faulted; a hypervisor may own it (VMX), and the kernel's "
        "log says more");
  }
  if (error == ESRCH) return base::Failure{base::Status::BAD_CONFIG, 0, "pid: the process has ended"};
  return unsupported(std::string("the driver cannot start: ") + std::strerror(error));
}

DriverBackend::Problem DriverBackend::start() {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const int error = ports_[i]->request(PTKIT_START, nullptr);
    if (error == 0) continue;
    if (error != ESRCH || !per_thread_) {
      stop();
      return start_error(error);
    }
    buffers_[i].disable();  // the thread has ended
    ports_[i] = nullptr;
  }
  ports_.erase(std::remove(ports_.begin(), ports_.end(), nullptr), ports_.end());
  if (ports_.empty()) return start_error(ESRCH);
  if (per_thread_) find_threads();
  trace_new_threads();
  return {};
}

DriverBackend::Problem DriverBackend::pause() {
  paused_ = true;
  return request_all(PTKIT_PAUSE, "pause");
}

DriverBackend::Problem DriverBackend::resume() {
  paused_ = false;
  for (DriverBuffer& buffer : buffers_) {
    if (auto failure = buffer.note_pause()) return failure;
  }
  if (auto failure = request_all(PTKIT_RESUME, "go on")) return failure;
  trace_new_threads();
  return {};
}

bool DriverBackend::waits() const noexcept {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [](const DriverBuffer& buffer) { return buffer.counts().waits; });
}

// A hypervisor may have ended since (VMXOFF). PTKIT_RESUME fails while it has not.
void DriverBackend::resume_where_cleared() {
  const auto now = std::chrono::steady_clock::now();
  if (paused_ || !waits() || (last_attempt_ && now - *last_attempt_ < kBetweenAttempts)) return;
  last_attempt_ = now;
  for (const auto& port : ports_) static_cast<void>(port->request(PTKIT_RESUME, nullptr));
}

void DriverBackend::stop() {
  for (const auto& port : ports_) static_cast<void>(port->request(PTKIT_STOP, nullptr));
}

// A thread that is recorded alone runs on CPUs without a buffer, too.
std::uint32_t DriverBackend::stream_of(std::uint32_t cpu) const noexcept {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                  [cpu](const DriverBuffer& buffer) { return buffer.cpu() == cpu; });
  return found != buffers_.end() ? found->stream() : buffers_.front().stream();
}

DriverBackend::Problem DriverBackend::drain(BundleOutput& output, std::vector<SidebandRecord>& records) {
  std::vector<SystemRecord> fresh;
  for (DriverBuffer& buffer : buffers_) {
    fresh.clear();
    if (auto failure = buffer.drain(output, fresh)) return failure;
    if (per_thread_) note_threads(fresh);
    for (SystemRecord& record : fresh) records.emplace_back(std::move(record), buffer.stream());
  }
  trace_new_threads();
  resume_where_cleared();
  const auto take = [&](std::uint32_t cpu, SystemRecord record) {
    records.emplace_back(std::move(record), stream_of(cpu));
  };
  if (auto failure = processes_.drain(output, take)) return failure;
  return kernel_code_.drain(output, take);
}

DriverBackend::Problem DriverBackend::collect(BundleOutput& output, std::vector<SidebandRecord>& records) {
  std::vector<SystemRecord> fresh;
  for (DriverBuffer& buffer : buffers_) {
    fresh.clear();
    if (auto failure = buffer.collect(output, fresh)) return failure;
    for (SystemRecord& record : fresh) records.emplace_back(std::move(record), buffer.stream());
  }
  return {};
}

void DriverBackend::wait(int handle, bool paused, std::chrono::milliseconds limit) {
  std::vector<int> files;
  if (handle >= 0) files.push_back(handle);
  // A session that is paused or has an error is always ready.
  for (const auto& port : ports_) {
    if (!paused && !waits()) files.push_back(port->file());
  }
  processes_.wait(std::move(files), limit);
}

std::vector<trace::Warning> DriverBackend::warnings() const {
  std::vector<trace::Warning> out = processes_.warnings();
  for (trace::Warning& warning : kernel_code_.warnings()) out.push_back(std::move(warning));
  out.insert(out.end(), warnings_.begin(), warnings_.end());
  std::uint64_t lost = processes_.lost_records() + kernel_code_.lost_records();
  std::uint64_t bad = 0;
  bool lost_children = false;
  for (const DriverBuffer& buffer : buffers_) {
    const DriverBuffer::Counts& counts = buffer.counts();
    const std::string label = buffer.label();
    lost += counts.lost_records;
    bad += counts.bad_bytes;
    lost_children = lost_children || counts.lost_children;
    if (counts.stops != 0) out.push_back(warn(WarningCode::BUFFER_FULL, counts.stops).at(label));
    if (counts.refused)
      out.push_back(warn(WarningCode::TRACING_FAILED, "perf's intel_pt has the trace unit").at(label));
    if (counts.cleared) out.push_back(warn(WarningCode::TRACE_EN_CLEARED).at(label));
    if (counts.error != 0)
      out.push_back(warn(WarningCode::TRACING_FAILED, std::strerror(counts.error)).at(label));
  }
  if (const std::size_t late = late_threads_ + begun_.size(); late != 0)
    out.push_back(warn(WarningCode::THREADS_LATE, late, pid_, missed_threads_ + begun_.size()));
  if (lost != 0) out.push_back(warn(WarningCode::SIDEBAND_LOST, lost));
  if (lost_children) out.push_back(warn(WarningCode::CHILDREN_NO_MEMORY));
  if (bad != 0) out.push_back(warn(WarningCode::DRIVER_RECORDS_INVALID, bad));
  return out;
}

std::uint64_t DriverBackend::trace_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const DriverBuffer& buffer : buffers_) sum += buffer.counts().bytes;
  return sum;
}

std::uint64_t DriverBackend::lost_records() const noexcept {
  std::uint64_t sum = processes_.lost_records();
  for (const DriverBuffer& buffer : buffers_) sum += buffer.counts().lost_records;
  return sum;
}

bool DriverBackend::failed() const noexcept {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [](const DriverBuffer& buffer) { return buffer.counts().error != 0; });
}

}  // namespace ptkit::capture
