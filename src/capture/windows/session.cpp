#include "capture/windows/session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "capture/common/errors.h"
#include "capture/device/config.h"
#include "capture/windows/affinity.h"
#include "capture/windows/descriptions.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

namespace {

bool has(const ptkit_windows_query& query, std::uint64_t feature) {
  return (query.query.features & feature) != 0;
}

constexpr std::size_t kMostNames = 5;  // in a warning

constexpr const char* kNoStore =
    "--bts: there is no Branch Trace Store on this system: the processor lacks it, or Windows keeps page "
    "tables of user code apart (KVA shadow); record packets";
constexpr const char* kOneLevel =
    "--levels: user and kernel code of one process at once is not possible on this system, where Windows "
    "keeps their page tables apart (KVA shadow); record one of both, or whole processors (-a)";

}  // namespace

// Options that the common part does not know, or explains in terms of Linux.
WindowsSession::Problem WindowsSession::check_system() const {
  if (query_.reason != 0)
    return unsupported(std::string("tracing is not possible on this system: ") + reason_text(query_.reason));
  if (stores_branches() && !has(query_, PTKIT_FEATURE_BTS)) return unsupported(kNoStore);
  if (!options_.module.empty() && !options_.record.levels.kernel)
    return invalid_option("--levels: a kernel driver is kernel code; leave --levels out");
  if (options_.module.size() >= sizeof config_.module)
    return invalid_option("the driver's name has " + std::to_string(options_.module.size()) +
                          " letters, and the driver takes " + std::to_string(sizeof config_.module - 1));
  if (options_.record.levels.user && options_.record.levels.kernel && !options_.record.whole_cpus() &&
      !has(query_, PTKIT_FEATURE_PROCESS_BOTH))
    return unsupported(kOneLevel);
  return {};
}

WindowsSession::Problem WindowsSession::prepare() {
  if (auto failure = check(options_.record)) return failure;
  auto query = query_driver(*port_);
  if (!query.ok()) return query.failure();
  query_ = query.value();
  if (auto failure = check_system()) return failure;
  RecordOptions asked = options_.record;
  asked.children = false;  // the driver cannot follow them
  // Branch Trace Store does not choose by CR3.
  asked.cpus.all = asked.cpus.all || (stores_branches() && asked.cpus.numbers.empty());
  auto config = driver_config(asked, query_.query, warnings_);
  if (!config.ok()) return config.failure();
  config_.config = config.value();
  std::copy(options_.module.begin(), options_.module.end(), std::begin(config_.module));
  if (auto failure = set_ranges()) return failure;
  auto writer = formats::PtkWriter::create(options_.record.output,
                                           {.redact = options_.record.redact, .owner = std::nullopt});
  if (!writer.ok()) return writer.failure();
  writer_.emplace(std::move(writer.value()));
  return {};
}

WindowsSession::Problem WindowsSession::set_ranges() {
  const std::size_t taken = options_.module.empty() ? 0 : 1;
  const std::size_t most = std::min<std::size_t>(capabilities_of(query_.query).ranges(), PTKIT_MOST_RANGES);
  const auto& filters = options_.record.filters;
  if (filters.size() + taken > most) {
    return unsupported("--filter: " + std::to_string(filters.size() + taken) +
                       " address ranges are needed, and this processor has " + std::to_string(most) +
                       "; leave some out");
  }
  for (const FilterRequest& filter : filters) {
    const bool stops = filter.kind == FilterRequest::Kind::TRACESTOP;
    config_.config.ranges[config_.config.range_count++] = {
        filter.first, filter.last,
        stops ? std::uint32_t{PTKIT_RANGE_STOP} : std::uint32_t{PTKIT_RANGE_FILTER}, 0};
  }
  return {};
}

WindowsSession::Problem WindowsSession::set_target(int pid) {
  config_.config.target = PTKIT_TARGET_ALL;
  config_.config.process = stores_branches() ? 0 : pid;
  if (options_.record.cpus.numbers.empty()) return {};
  auto masks = affinity_of(options_.record.cpus.numbers, machine_.group_processors);
  if (!masks.ok()) return masks.failure();
  config_.config.target = PTKIT_TARGET_AFFINITY;
  std::copy(masks.value().begin(), masks.value().end(), std::begin(config_.affinity));
  return {};
}

WindowsSession::Problem WindowsSession::simple(std::uint32_t code, const char* what) {
  std::size_t written = 0;
  const std::uint32_t error = port_->request(code, {}, {}, written);
  if (error == 0) return {};
  return refused_by(*port_, what, error);
}

WindowsSession::Problem WindowsSession::open_buffers() {
  for (std::uint32_t cpu = 0; cpu < query_.query.cpus; ++cpu) {
    auto buffer = WindowsBuffer::open(*port_, config_.config, cpu);
    if (!buffer.ok()) return buffer.failure();
    if (buffer.value()) buffers_.push_back(std::move(*buffer.value()));
  }
  if (!buffers_.empty()) return {};
  return unsupported("-C: the processors are not there, or offline; leave -C out");
}

void WindowsSession::write_configuration(const formats::ClockSample& now) {
  info_.backend = "driver";
  info_.command = options_.record.argv;
  info_.machine = machine_.name;
  info_.begin_ns = now.realtime_ns;
  info_.clocks = now;
  writer_->info(info_);
  writer_->configuration(recorded_configuration(config_.config, query_.query));
}

WindowsSession::Problem WindowsSession::begin(int pid, const formats::ClockSample& now) {
  if (auto failure = set_target(pid)) return failure;
  if (const auto error = exchange(*port_, PTKIT_WINDOWS_CONFIGURE, config_); error != 0)
    return refused_by(*port_, "take the configuration", error);
  if (auto failure = open_buffers()) return failure;
  write_configuration(now);
  images_.emplace(*writer_, *source_, pid, options_.record.levels.kernel);
  trace::Stream whole;
  if (config_.config.process != 0) {
    whole.pid = pid;
    whole.space = images_->space_of(pid);
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i].begin(*writer_, static_cast<std::uint32_t>(i), whole);
  begin_events(pid);
  if (auto failure = simple(PTKIT_WINDOWS_START, "start")) return failure;
  began_ = true;
  return {};
}

// Before tracing starts: the first rows have their thread, too.
void WindowsSession::begin_events(int pid) {
  EventRecorder::Options options;
  for (const WindowsBuffer& buffer : buffers_) options.cpus.push_back(buffer.cpu());
  options.pid = stores_branches() || options_.record.whole_cpus() ? 0 : pid;
  options.kernel = options_.record.levels.kernel;
  options.tsc_khz = query_.query.tsc_khz;
  options.branch_records = stores_branches();
  if (!options_.switches)
    options.left_out = "Context switches were not asked for (--no-switches).";
  else if (!stores_branches() && (config_.config.flags & PTKIT_TRACE_TSC) == 0)
    options.left_out = "Context switches cannot be aligned with a trace without TSC packets (--timing).";
  recorder_.emplace(*events_, *images_, std::move(options));
  if (!recorder_->has_switches()) return;
  for (WindowsBuffer& buffer : buffers_) buffer.expect_threads();
}

// Records of images come first: trace that is in the bundle can be decoded.
WindowsSession::Problem WindowsSession::drain() {
  if (auto failure = drain_sideband()) return failure;
  recorder_->drain(*writer_, buffers_);
  return drain_buffers();
}

WindowsSession::Problem WindowsSession::drain_buffers() {
  for (WindowsBuffer& buffer : buffers_) {
    auto failure = buffer.drain(*writer_, [this](std::int64_t pid) { return images_->space_of(pid); });
    if (failure) return failure;
  }
  return {};
}

// The session has one ring. The status of any of its CPUs has its state.
WindowsSession::Problem WindowsSession::drain_sideband() {
  const std::uint64_t ring = buffers_.front().sideband_bytes();
  if (ring == 0) return {};
  ptkit_status status{};
  status.cpu = buffers_.front().cpu();
  if (const auto error = exchange(*port_, PTKIT_WINDOWS_STATUS, status); error != 0)
    return refused_by(*port_, "give the state of the sideband", error);
  lost_records_ = status.sideband_lost;
  const std::uint64_t fresh = status.sideband_head - sideband_tail_;
  if (fresh == 0) return {};
  if (fresh > ring)
    return unsupported(
        "the driver's sideband counts impossibly; install the driver that came with this program");
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(fresh));
  ptkit_windows_read read{};
  read.what = PTKIT_READ_SIDEBAND;
  read.offset = sideband_tail_ % ring;
  read.bytes = fresh;
  std::size_t written = 0;
  if (const auto error = port_->request(PTKIT_WINDOWS_READ, bytes_of(read), bytes, written); error != 0)
    return refused_by(*port_, "copy its sideband", error);
  sideband_tail_ = status.sideband_head;
  ptkit_consume consume{};
  consume.cpu = status.cpu;
  consume.sideband_tail = sideband_tail_;
  std::size_t none = 0;
  if (const auto error = port_->request(PTKIT_WINDOWS_CONSUME, bytes_of(consume), {}, none); error != 0)
    return refused_by(*port_, "take back the room of its sideband", error);
  bytes.resize(written);
  WindowsRecords parsed = parse_records(bytes);
  bad_bytes_ += parsed.bad_bytes;
  for (const WindowsRecord& record : parsed.records) {
    images_->apply(record);
    recorder_->add(record);
  }
  return {};
}

WindowsSession::Problem WindowsSession::collect() {
  for (WindowsBuffer& buffer : buffers_) {
    auto failure = buffer.collect(*writer_, [this](std::int64_t pid) { return images_->space_of(pid); });
    if (failure) return failure;
  }
  return {};
}

WindowsSession::Problem WindowsSession::snapshot() {
  if (config_.config.mode != PTKIT_MODE_RING) return {};
  if (auto failure = drain_sideband()) return failure;
  if (auto failure = collect()) return failure;
  ++snapshots_;
  writer_->flush();
  return {};
}

std::uint64_t WindowsSession::trace_bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const WindowsBuffer& buffer : buffers_) sum += buffer.counts().bytes;
  return sum;
}

bool WindowsSession::failed() const noexcept {
  return !buffers_.empty() && std::all_of(buffers_.begin(), buffers_.end(), [](const WindowsBuffer& buffer) {
    return buffer.counts().reason != 0;
  });
}

void WindowsSession::warn_of_buffers(std::vector<std::string>& out) const {
  for (const WindowsBuffer& buffer : buffers_) {
    const std::string label = "CPU " + std::to_string(buffer.cpu()) + ": ";
    const WindowsBuffer::Counts& counts = buffer.counts();
    if (counts.stops != 0)
      out.push_back(label + "the buffer was full " + counted(counts.stops, "time") +
                    ", and trace is missing there. Use a larger --buffer, or trace less.");
    if (counts.cleared)
      out.push_back(label + "TraceEn was found clear: a hypervisor or another tracer cleared it.");
    if (counts.reason != 0) out.push_back(label + "tracing ended: " + reason_text(counts.reason) + ".");
  }
}

void WindowsSession::warn_of_images(std::vector<std::string>& out) const {
  if (lost_records_ != 0)
    out.push_back("The driver had no room for " + counted(lost_records_, "record") +
                  " of processes and images, so that code may be missing. Trace less.");
  if (bad_bytes_ != 0)
    out.push_back("The driver wrote " + counted(bad_bytes_, "byte") +
                  " of sideband that are no records, so that code may be missing.");
  if (!images_ || images_->unread().empty()) return;
  const std::vector<std::string>& unread = images_->unread();
  std::string names;
  for (std::size_t i = 0; i < std::min(unread.size(), kMostNames); ++i)
    names += (i == 0 ? "" : ", ") + unread[i];
  if (unread.size() > kMostNames) names += " and others";
  out.push_back("The code of " + counted(unread.size(), "image") + " is missing (" + names +
                "): its file cannot be read, or was replaced. Give it with --image.");
}

std::vector<std::string> WindowsSession::warnings() const {
  std::vector<std::string> out;
  for (const trace::Warning& warning : warnings_) out.push_back(warning.text());
  if (recorder_) recorder_->warn(out);
  const bool user_alone =
      config_.config.process == 0 && options_.record.levels.user && !options_.record.levels.kernel;
  if (!stores_branches() && user_alone && recorder_ && !recorder_->has_switches())
    out.emplace_back(
        "Processes are not separated: user code alone has no PIP packets. Record a process (-p), or --levels "
        "both.");
  warn_of_buffers(out);
  warn_of_images(out);
  return out;
}

WindowsSession::Problem WindowsSession::stop(const formats::ClockSample& now) {
  if (auto failure = pause()) return failure;
  if (auto failure = collect()) return failure;
  if (auto failure = simple(PTKIT_WINDOWS_STOP, "stop")) return failure;
  if (auto failure = drain()) return failure;
  recorder_->end(*writer_, buffers_);
  info_.end_ns = now.realtime_ns;
  return {};
}

base::Result<RecordResult> WindowsSession::finish(std::optional<int> exit_status) {
  info_.exit_status = exit_status;
  writer_->info(info_);
  if (options_.record.argv.empty()) writer_->metadata(R"({"program": false})");
  RecordResult result;
  for (const std::string& text : warnings()) {
    writer_->warning(text);
    result.warnings.push_back(trace::warn(trace::WarningCode::RECORDED, text));
  }
  auto size = writer_->finish();
  if (!size.ok()) return size.failure();
  result.exit_status = exit_status.value_or(0);
  result.streams = static_cast<std::uint32_t>(buffers_.size());
  result.trace_bytes = trace_bytes();
  result.bundle_bytes = size.value();
  result.snapshots = snapshots_;
  return result;
}

}  // namespace ptkit::capture
