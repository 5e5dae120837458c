#include "capture/driver_session.h"

#include <algorithm>

#include "capture/configuration.h"
#include "capture/driver_config.h"
#include "capture/driver_filters.h"
#include "capture/signals_blocked.h"

namespace ptkit::capture {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{20};  // how late requests may be followed
constexpr milliseconds kFlushInterval{1000};
constexpr milliseconds kPatience{5000};  // of a program that was asked to end

}  // namespace

base::Result<RecordResult> DriverRecorder::Session::run() {
  if (auto failure = check(options_)) return *failure;
  auto port = open_();
  if (!port.ok()) return port.failure();
  auto query = query_driver(*port.value());
  if (!query.ok()) return query.failure();
  query_ = query.value();
  auto config = driver_config(options_, query_, warnings_);
  if (!config.ok()) return config.failure();
  config_ = config.value();
  if (auto failure = check_filters(options_, capabilities_of(query_).ranges())) return *failure;
  auto writer = formats::PtkWriter::create(options_.output, {.redact = options_.redact});
  if (!writer.ok()) return writer.failure();
  output_ = std::make_unique<BundleOutput>(std::move(writer.value()), 0);
  sigset_t mask{};
  const SignalsBlocked blocked(mask);
  if (auto failure = record(std::move(port.value()), mask)) {
    units_.reset();  // an open session would go on
    target_.kill();
    return *failure;
  }
  return finish();
}

DriverRecorder::Session::Problem DriverRecorder::Session::record(std::unique_ptr<DriverPort> port,
                                                                 const sigset_t& mask) {
  calibration_.emplace();
  if (options_.driver.kernel) {
    if (auto failure = kernel_.look())
      warnings_.push_back("Kernel code is missing: " + failure->detail + ".");
  }
  if (auto failure = find_target(mask)) return failure;
  if (auto failure = find_filters()) return failure;
  units_ = std::make_unique<DriverUnits>(open_, query_);
  processes_ = std::make_unique<DriverProcesses>(*output_, options_.driver.user);
  if (auto failure = units_->configure(std::move(port), config_, options_.driver.cpus)) return failure;
  describe();
  make_streams();
  if (auto failure = begin()) return failure;
  auto failure = loop();
  if (!failure) failure = end();
  // What is in the bundle by now is kept.
  if (failure) warnings_.push_back("Recording ended early: " + failure->detail + ".");
  units_->stop();
  take_records(trace::kTscMax);
  tell_switches();
  trace_bytes_ = units_->trace_bytes();
  wait_for_program();
  return {};
}

DriverRecorder::Session::Problem DriverRecorder::Session::find_target(const sigset_t& mask) {
  const bool launches = !options_.argv.empty();
  if (!launches && options_.driver.pid == 0) return {};
  auto target = launches ? DriverTarget::launch(options_, mask) : DriverTarget::attach(options_.driver.pid);
  if (!target.ok()) return target.failure();
  target_ = std::move(target.value());
  if (!options_.driver.whole_cpus()) config_.process = target_.pid();
  if (launches && needs_libraries(options_, program_path(target_.pid()))) return target_.run_to_entry();
  return {};
}

DriverRecorder::Session::Problem DriverRecorder::Session::find_filters() {
  if (options_.filters.empty()) return {};
  auto ranges = find_ranges(options_, target_.pid(), kernel_);
  if (!ranges.ok()) return ranges.failure();
  const unsigned most = std::min<unsigned>(capabilities_of(query_).ranges(), PTKIT_MOST_RANGES);
  if (ranges.value().size() > most) {
    return base::Failure{base::Status::UNSUPPORTED, 0,
                         "filters: they need " + std::to_string(ranges.value().size()) +
                             " ranges of addresses, and this processor has " + std::to_string(most)};
  }
  std::copy(ranges.value().begin(), ranges.value().end(), config_.ranges);
  config_.range_count = static_cast<std::uint8_t>(ranges.value().size());
  return {};
}

void DriverRecorder::Session::write_info() {
  output_->info(info_);
  trace::Configuration configuration = recorded_configuration(config_, query_);
  calibration_->calibrate(configuration.clock);
  if (query_.tsc_khz != 0) configuration.clock.tsc_hz = std::uint64_t{query_.tsc_khz} * 1000;
  output_->configuration(configuration);
}

void DriverRecorder::Session::describe() {
  info_.backend = "driver";
  info_.command = options_.argv;
  info_.machine = machine();
  info_.begin_ns = real_time_ns();
  write_info();
  const std::uint64_t tsc = read_tsc();
  if (target_.pid() != 0) processes_->begin(target_.pid(), tsc);
  if (options_.driver.whole_cpus()) processes_->find_all(tsc);
}

void DriverRecorder::Session::make_streams() {
  for (DriverBuffer& buffer : units_->buffers()) {
    trace::Stream stream;
    stream.cpu = buffer.cpu();
    stream.name = "cpu " + std::to_string(buffer.cpu());
    if (config_.process != 0) {
      stream.pid = config_.process;
      stream.space = processes_->space_of(config_.process);
    }
    buffer.set_stream(output_->stream(stream));
  }
}

DriverRecorder::Session::Problem DriverRecorder::Session::begin() {
  if (auto failure = units_->start()) return failure;
  // What the driver changes in the kernel's code to see switches is there by now. Nobody empties the buffers
  // while the code is saved.
  if (options_.driver.kernel) {
    if (auto failure = units_->pause()) return failure;
    save_kernel();
    if (auto failure = units_->resume()) return failure;
  }
  if (options_.driver.limit_ms != 0) deadline_ = Clock::now() + milliseconds(options_.driver.limit_ms);
  last_flush_ = Clock::now();
  output_->flush();
  target_.go();
  pid_ = target_.pid();
  started_ = true;
  return {};
}

void DriverRecorder::Session::save_kernel() {
  if (!options_.driver.kernel || kernel_.parts().empty()) return;
  if (auto failure = kernel_.save(*output_, trace::kTscMin))
    warnings_.push_back("Kernel code is missing: " + failure->detail + ".");
}

DriverRecorder::Session::Problem DriverRecorder::Session::loop() {
  while (!over()) {
    units_->wait(target_.handle(), paused_, kTick);
    if (auto failure = drain()) return failure;
    if (auto failure = follow_requests()) return failure;
    if (Clock::now() - last_flush_ < kFlushInterval) continue;
    last_flush_ = Clock::now();
    tell_switches();
    output_->flush();
  }
  return {};
}

bool DriverRecorder::Session::over() {
  interrupted_ = interrupted_ || stop_asked_;
  limited_ = limited_ || (deadline_ && Clock::now() >= *deadline_);
  if (interrupted_ || limited_ || detach_asked_ || output_->failed() || units_->failed()) return true;
  if (target_.pid() == 0 || !target_.has_ended()) return false;
  // What it began is of interest as long as somebody tells of it.
  const bool told = config_.sideband_bytes != 0 && options_.driver.children;
  if (!told) return true;
  processes_->forget_ended();
  return !processes_->alive(target_.pid());
}

DriverRecorder::Session::Problem DriverRecorder::Session::follow_requests() {
  const bool wanted = pause_asked_;
  if (wanted != paused_) {
    if (auto failure = wanted ? units_->pause() : units_->resume()) return failure;
    paused_ = wanted;
  }
  if (snapshot_asked_.exchange(false)) return snapshot();
  return {};
}

DriverRecorder::Session::Problem DriverRecorder::Session::drain() {
  const std::uint64_t now = read_tsc();
  if (auto failure = units_->drain(*output_, records_)) return failure;
  trace_bytes_ = units_->trace_bytes();
  // A processor may have told something before that, while the ring before its own was read.
  take_records(horizon_);
  horizon_ = now;
  return {};
}

void DriverRecorder::Session::take_records(std::uint64_t before) {
  std::stable_sort(records_.begin(), records_.end(),
                   [](const ToldRecord& a, const ToldRecord& b) { return a.first.tsc < b.first.tsc; });
  const auto end = std::find_if(records_.begin(), records_.end(),
                                [before](const ToldRecord& one) { return one.first.tsc >= before; });
  for (auto at = records_.begin(); at != end; ++at) {
    const DriverRecord& record = at->first;
    if (record.type == PTKIT_RECORD_MODULE && options_.driver.kernel) {
      if (!kernel_.look()) save_kernel();
    } else {
      processes_->take(record, at->second);
    }
  }
  records_.erase(records_.begin(), end);
}

void DriverRecorder::Session::tell_switches() {
  for (const DriverBuffer& buffer : units_->buffers()) {
    trace::Stream more;
    more.cpu = buffer.cpu();
    more.name = "cpu " + std::to_string(buffer.cpu());
    more.switches = processes_->take_switches(buffer.stream());
    if (!more.switches.empty()) output_->add_to(buffer.stream(), more);
  }
}

DriverRecorder::Session::Problem DriverRecorder::Session::snapshot() {
  if (options_.ring_bytes == 0) return {};
  if (!paused_) {
    if (auto failure = units_->pause()) return failure;
  }
  if (auto failure = units_->collect(*output_)) return failure;
  ++snapshots_;
  if (!paused_) {
    if (auto failure = units_->resume()) return failure;
  }
  tell_switches();
  output_->flush();
  return {};
}

DriverRecorder::Session::Problem DriverRecorder::Session::end() {
  // A snapshot that was asked for right before the end is in what is collected here.
  snapshots_ += snapshot_asked_ && options_.ring_bytes != 0 ? 1U : 0U;
  if (auto failure = units_->pause()) return failure;
  if (auto failure = units_->drain(*output_, records_)) return failure;
  if (auto failure = units_->collect(*output_)) return failure;
  if (const std::size_t changed = kernel_.changed_pages(); changed != 0) {
    warnings_.push_back("The kernel changed its own code while recording (" + std::to_string(changed) +
                        (changed == 1 ? " page" : " pages") +
                        "): rows of kernel code may be wrong or missing there.");
  }
  return {};
}

// Recording has ended, the program may run on, or is asked to end.
void DriverRecorder::Session::wait_for_program() {
  if (!target_.ours()) return;
  const bool ask = interrupted_;
  if (ask) target_.signal(SIGINT);
  const auto asked = Clock::now();
  bool pressed = ask;
  while (!target_.has_ended()) {
    if (stop_asked_ && !pressed) {
      target_.signal(SIGINT);
      pressed = interrupted_ = true;
    }
    if (pressed && Clock::now() - asked >= kPatience) target_.signal(SIGKILL);
    units_->wait(target_.handle(), true, kTick);
  }
}

base::Result<RecordResult> DriverRecorder::Session::finish() {
  RecordResult result;
  result.exit_status = target_.exit_status().value_or(0);
  result.streams = output_->streams();
  result.trace_bytes = trace_bytes_;
  result.snapshots = snapshots_;
  result.interrupted = interrupted_;
  result.limited = limited_;
  info_.end_ns = real_time_ns();
  info_.exit_status = target_.exit_status();
  write_info();  // the clock is known better now
  if (options_.argv.empty()) output_->metadata(R"({"program": false})");
  for (std::string& warning : units_->warnings()) warnings_.push_back(std::move(warning));
  for (std::string& warning : processes_->warnings()) warnings_.push_back(std::move(warning));
  result.warnings = warnings_;
  for (const std::string& warning : warnings_) output_->warning(warning);
  auto size = output_->finish();
  if (!size.ok()) return size.failure();
  result.bundle_bytes = size.value();
  return result;
}

}  // namespace ptkit::capture
