#include "capture/linux/session/recorder.h"

#include <poll.h>

#include <algorithm>
#include <iterator>

#include "base/posix/signals_blocked.h"
#include "capture/linux/process/pt_config.h"
#include "capture/linux/session/filter_resolver.h"
#include "capture/linux/session/missing_code.h"
#include "formats/common/files.h"
#include "formats/registry.h"
#include "processes/switch_alignment.h"
#include "trace/clock.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPollInterval{20};  // the longest delay until a request is handled

// The skew, in TSC ticks, that every context switch may have. When recording begins, the TSC frequency may be
// known from perf's clock only.
std::uint64_t max_skew_of(trace::Clock clock) {
  if (clock.tsc_hz == 0 && clock.perf_time_known && clock.time_mult != 0)
    clock.tsc_hz = (trace::kNsPerSecond << clock.time_shift) / clock.time_mult;
  return clock.tsc_hz != 0 ? processes::max_switch_skew(clock) : 0;
}

// Aligns context switches to PIP packets: the kernel records switches by time only. Reads the recorded trace
// once, from the bundle, and adds the stream offsets of switches to the bundle. Returns warnings.
std::vector<trace::Warning> add_switch_offsets(BundleOutput& output, processes::SwitchAlignment options) {
  output.flush();
  if (output.failed()) return {};  // output.finish() reports it
  if (!formats::is_file(output.path())) return {warn(WarningCode::PIP_NO_FILE)};
  auto opened = formats::open(output.path(), {.format = "ptk"});
  if (!opened.ok()) return {warn(WarningCode::PIP_UNREADABLE, opened.failure().detail)};
  trace::TraceBundle& bundle = opened.value();
  bundle.warnings.clear();  // the reader warns that the unfinished bundle has no end
  options.processes.resize(bundle.spaces.size());
  if (!processes::align_switches_to_pips(bundle, options)) return {warn(WarningCode::PIP_INTERRUPTED)};
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) {
    if (bundle.streams[i].switches_by_offset)
      output.switch_offsets(static_cast<std::uint32_t>(i), bundle.streams[i]);
  }
  return std::move(bundle.warnings);
}

}  // namespace

base::Result<RecordResult> HardwareRecorder::run() {
  if (auto failure = check(options_)) return *failure;
  if (auto failure = backend_->prepare(options_, warnings_)) return *failure;
  auto writer =
      formats::PtkWriter::create(options_.output, {.redact = options_.redact, .owner = options_.owner});
  if (!writer.ok()) return writer.failure();
  sigset_t mask{};
  const base::SignalsBlocked blocked(mask);
  parser_.emplace();
  parser_->keep_debug_information(options_.with_debug);
  output_ = std::make_unique<BundleOutput>(std::move(writer.value()), 0, *parser_);
  auto result = record_and_finish(mask);
  // The recorder may outlive its recording, but the parser's process must not. Users of the parser are
  // destroyed first.
  processes_.reset();
  output_.reset();
  parser_.reset();
  return result;
}

base::Result<RecordResult> HardwareRecorder::record_and_finish(const sigset_t& mask) {
  if (auto failure = record(mask)) {
    backend_.reset();  // an open session would continue to trace
    target_.kill();
    return *failure;
  }
  return finish();
}

HardwareRecorder::Problem HardwareRecorder::record(const sigset_t& mask) {
  calibration_.emplace();
  if (options_.levels.kernel) find_kernel();
  if (auto failure = open_target(mask)) return failure;
  if (auto failure = configure()) return failure;
  const std::vector<trace::Stream> streams = backend_->streams();
  const bool by_offset = std::any_of(streams.begin(), streams.end(),
                                     [](const trace::Stream& one) { return one.switches_by_offset; });
  processes_ = std::make_unique<SystemProcesses>(*output_, options_.levels.user, by_offset,
                                                 max_skew_of(configuration_.clock));
  if (backend_->records_others() && !options_.whole_cpus()) processes_->ignore_others();
  processes_->while_saving([this] { drain_if_due(); });
  parser_->while_waiting([this] { drain_if_due(); });
  write_metadata();
  make_streams();
  buffers_fill_ = true;
  save_processes();
  if (auto failure = begin()) return failure;
  auto failure = loop();
  if (!failure) failure = end();
  // A failure keeps the data that the bundle has by now.
  if (failure) warnings_.push_back(warn(WarningCode::RECORDING_FAILED, failure->detail));
  backend_->stop();
  apply_records(trace::kTscMax);
  processes_->save_jit_code(read_tsc());
  write_switches();
  progress_.trace_bytes = backend_->trace_bytes();
  close_backend();
  wait_for_program();
  return {};
}

// Frees the trace unit for other tracers as soon as the recording has ended.
void HardwareRecorder::close_backend() {
  for (trace::Warning& warning : backend_->warnings()) warnings_.push_back(std::move(warning));
  records_lost_ = backend_->lost_records() != 0;
  backend_.reset();
}

HardwareRecorder::Problem HardwareRecorder::open_target(const sigset_t& mask) {
  const bool launches = !options_.argv.empty();
  if (!launches && options_.pid == 0) return {};
  auto target = launches ? TargetProcess::launch(options_, mask) : TargetProcess::attach(options_.pid);
  if (!target.ok()) return target.failure();
  target_ = std::move(target.value());
  if (launches && needs_libraries(options_, program_path(target_.pid()))) return target_.run_to_entry();
  return {};
}

HardwareRecorder::Problem HardwareRecorder::configure() {
  auto filters = resolve_filters(options_, target_.pid(), kernel_, *parser_);
  if (!filters.ok()) return filters.failure();
  auto triggers = resolve_breakpoints(options_, target_.pid(), kernel_, *parser_);
  if (!triggers.ok()) return triggers.failure();
  const int pid = options_.whole_cpus() ? 0 : target_.pid();
  if (auto failure = backend_->configure(pid, filters.value())) return failure;
  // configure() passed a PID to the kernel, which may have been reused. The process still exists after that,
  // so the PID was its own.
  if (!target_.launched() && target_.pid() != 0 && target_.has_ended())
    return base::Failure{base::Status::BAD_CONFIG, 0, "pid: the process has ended"};
  configuration_ = backend_->configuration();
  return backend_->set_breakpoints(triggers.value(), target_.pid());
}

void HardwareRecorder::write_info() {
  output_->info(info_);
  trace::Configuration configuration = configuration_;
  trace::Clock& clock = configuration.clock;
  trace::Clock measured;
  calibration_->calibrate(measured);
  if (clock.tsc_hz == 0) clock.tsc_hz = measured.tsc_hz;
  if (!clock.perf_time_known) {
    clock.perf_time_known = true;
    clock.time_shift = measured.time_shift;
    clock.time_mult = measured.time_mult;
    clock.time_zero = measured.time_zero;
  }
  output_->configuration(configuration);
}

void HardwareRecorder::write_metadata() {
  info_.backend = backend_->name();
  info_.command = options_.argv;
  info_.machine = machine();
  info_.begin_ns = real_time_ns();
  write_info();
  if (target_.pid() != 0) processes_->begin(target_.pid(), read_tsc());
}

void HardwareRecorder::save_processes() {
  if (target_.pid() != 0) processes_->save_code(target_.pid());
  if (options_.whole_cpus()) processes_->find_all(read_tsc());
}

// Buffers of threads that begin while recording come later.
void HardwareRecorder::make_streams() {
  std::vector<trace::Stream> all = backend_->streams();
  for (std::size_t index = streams_.size(); index < all.size(); ++index) {
    trace::Stream& stream = all[index];
    streams_.emplace_back(0, stream);
    if (target_.pid() != 0 && !options_.whole_cpus()) {
      stream.pid = target_.pid();
      stream.space = processes_->space_of(target_.pid());
    }
    streams_.back().first = output_->stream(stream);
    backend_->set_stream(index, streams_.back().first);
  }
}

HardwareRecorder::Problem HardwareRecorder::begin() {
  if (auto failure = start_backend()) return failure;
  paused_ = triggers_.waits_for_start();
  if (auto failure = backend_->enable_breakpoints()) return failure;
  if (options_.seconds.count() != 0) deadline_ = Clock::now() + options_.seconds;
  last_flush_ = Clock::now();
  output_->flush();
  target_.release();
  progress_.pid = target_.pid();
  progress_.started = true;
  return {};
}

// Saves the kernel's code in the state that it has while tracing: before start() if the back end permits
// that, otherwise in a pause right after start().
HardwareRecorder::Problem HardwareRecorder::start_backend() {
  const bool begins_first = backend_->start_changes_kernel_code();
  if (begins_first) {
    if (auto failure = backend_->start()) return failure;
    if (!options_.levels.kernel) return {};
    if (auto failure = backend_->pause()) return failure;
  }
  kernel_saved_ = read_tsc();
  save_kernel(trace::kTscMin);
  // Saving takes long, and the records written meanwhile must not fill the ring.
  if (auto failure = drain_buffers()) return failure;
  if (begins_first) return backend_->resume();
  return triggers_.waits_for_start() ? Problem() : backend_->start();
}

// Takes long, so it precedes configure(), after which rings fill. What the kernel generates in between is
// found in the trace (save_missing_code()).
void HardwareRecorder::find_kernel() {
  kernel_found_ = read_tsc();
  if (auto failure = kernel_.find_parts())
    warnings_.push_back(warn(WarningCode::KERNEL_CODE_MISSING, failure->detail));
  kernel_.save_names(*output_);
}

// Saves the parts that are not in the bundle yet. Parts are found again if some may be new, which takes as
// long as saving: start() may generate code (probes), and others load modules.
void HardwareRecorder::save_kernel(std::uint64_t tsc) {
  if (!options_.levels.kernel || kernel_.parts().empty()) return;
  std::optional<base::Failure> failure;
  if (!backend_->reports_kernel_code() || kernel_.modules_changed()) failure = kernel_.find_parts();
  if (!failure) failure = kernel_.save(*output_, tsc, [this] { drain_if_due(); });
  if (failure) warnings_.push_back(warn(WarningCode::KERNEL_CODE_MISSING, failure->detail));
}

HardwareRecorder::Problem HardwareRecorder::loop() {
  while (!is_over()) {
    backend_->wait(target_.handle(), paused_, kPollInterval);
    if (auto failure = drain()) return failure;
    if (auto failure = follow_requests()) return failure;
    if (Clock::now() - last_flush_ < kFlushInterval) continue;
    last_flush_ = Clock::now();
    write_switches();
    output_->flush();
  }
  return {};
}

bool HardwareRecorder::is_over() {
  interrupted_ = interrupted_ || requests_.stop;
  limited_ = limited_ || (deadline_ && Clock::now() >= *deadline_);
  if (interrupted_ || limited_ || requests_.detach || output_->failed() || backend_->failed()) return true;
  if (target_.pid() == 0 || !target_.has_ended()) return false;
  // Running children are recorded, too, if the back end has sideband records.
  const bool follows = backend_->has_sideband() && options_.children;
  if (!follows) return true;
  processes_->forget_ended();
  return !processes_->alive(target_.pid());
}

HardwareRecorder::Problem HardwareRecorder::follow_requests() {
  const bool wanted = requests_.pause || triggers_.waits_for_start();
  if (wanted != paused_) {
    if (auto failure = wanted ? backend_->pause() : backend_->resume()) return failure;
    paused_ = wanted;
  }
  if (requests_.snapshot.exchange(false)) return write_snapshot();
  return {};
}

HardwareRecorder::Problem HardwareRecorder::drain() {
  const std::uint64_t now = read_tsc();
  if (auto failure = drain_buffers()) return failure;
  // Rings are read one after the other. A CPU may write a record to a ring that was read already, while a
  // later record of another CPU is still read by this pass. Only records before the last pass are complete.
  apply_records(complete_before_);
  complete_before_ = now;
  processes_->look_at_jit_names(now);
  return {};
}

HardwareRecorder::Problem HardwareRecorder::drain_buffers() {
  make_streams();
  if (auto failure = backend_->drain(*output_, records_)) return failure;
  for (const std::uint32_t trigger : backend_->take_fired()) on_trigger(trigger);
  progress_.trace_bytes = backend_->trace_bytes();
  last_drain_ = Clock::now();
  return {};
}

// Called during long operations. A failure is ignored here: the next drain() fails again and reports it.
void HardwareRecorder::drain_if_due() {
  if (buffers_fill_ && Clock::now() - last_drain_ >= kPollInterval) static_cast<void>(drain_buffers());
}

void HardwareRecorder::on_trigger(std::uint32_t trigger) {
  using Action = TriggerRequest::Action;
  const std::optional<Action> due = triggers_.on_event(trigger, paused_);
  if (due == Action::STOP) limited_ = true;
  if (due == Action::SNAPSHOT) requests_.snapshot = true;
}

void HardwareRecorder::apply_records(std::uint64_t before) {
  std::stable_sort(records_.begin(), records_.end(), [](const SidebandRecord& a, const SidebandRecord& b) {
    return a.first.tsc < b.first.tsc;
  });
  const auto end = std::find_if(records_.begin(), records_.end(),
                                [before](const SidebandRecord& one) { return one.first.tsc >= before; });
  const std::vector<SidebandRecord> due(std::make_move_iterator(records_.begin()),
                                        std::make_move_iterator(end));
  records_.erase(records_.begin(), end);
  for (const auto& [record, stream] : due) {
    if (options_.levels.kernel) apply_kernel_record(record);
    processes_->take(record, stream);
    drain_if_due();
  }
}

// Earlier changes are in the parts that were found, and in the code that was saved.
void HardwareRecorder::apply_kernel_record(const SystemRecord& record) {
  using Kind = SystemRecord::Kind;
  if (record.kind == Kind::MODULE) save_kernel(record.tsc);
  if (record.kind == Kind::KSYMBOL && record.tsc >= kernel_found_)
    kernel_.add_ksymbol(*output_, record.tsc, record.text, record.address, record.address + record.bytes);
  if (record.kind == Kind::TEXT_POKE && record.tsc >= kernel_saved_)
    kernel_.text_poke(*output_, record.tsc, record.address, record.old_code, record.new_code);
}

void HardwareRecorder::write_switches() {
  for (const auto& [number, stream] : streams_) {
    trace::Stream more = stream;
    more.switches = processes_->take_switches(number);
    if (!more.switches.empty()) output_->add_to(number, more);
  }
}

HardwareRecorder::Problem HardwareRecorder::write_snapshot() {
  if (options_.ring == 0) return {};
  if (!paused_) {
    if (auto failure = backend_->pause()) return failure;
  }
  if (auto failure = backend_->collect(*output_, records_)) return failure;
  ++snapshots_;
  if (!paused_) {
    if (auto failure = backend_->resume()) return failure;
  }
  write_switches();
  output_->flush();
  return {};
}

HardwareRecorder::Problem HardwareRecorder::end() {
  // collect() below includes a snapshot that was requested right before the end.
  snapshots_ += requests_.snapshot && options_.ring != 0 ? 1U : 0U;
  if (auto failure = backend_->pause()) return failure;
  make_streams();
  if (auto failure = backend_->drain(*output_, records_)) return failure;
  if (auto failure = backend_->collect(*output_, records_)) return failure;
  if (options_.levels.kernel) end_kernel();
  return {};
}

// Code that came without a record, as of a module that perf does not report, is still there in most cases.
void HardwareRecorder::end_kernel() {
  apply_records(trace::kTscMax);
  save_kernel(read_tsc());
  if (const std::size_t changed = kernel_.changed_pages(); changed != 0)
    warnings_.push_back(warn(WarningCode::KERNEL_CODE_CHANGED, changed));
}

// Tracing has ended. Waits for the launched program, and sends it SIGINT if a stop was requested.
void HardwareRecorder::wait_for_program() {
  if (!target_.launched()) return;
  std::optional<Clock::time_point> asked;
  while (!target_.has_ended()) {
    interrupted_ = interrupted_ || requests_.stop;
    if (interrupted_ && !asked) {
      target_.signal(SIGINT);
      asked = Clock::now();
    }
    if (asked && Clock::now() - *asked >= kExitTime) target_.signal(SIGKILL);
    pollfd ended{target_.handle(), POLLIN, 0};
    static_cast<void>(::poll(&ended, 1, static_cast<int>(kPollInterval.count())));
  }
}

// A stop request from here on cancels the alignment, as the recording has ended already.
void HardwareRecorder::align_switches_to_pips() {
  if (!options_.levels.kernel || processes_->has_cr3()) return;
  requests_.stop = false;
  for (trace::Warning& warning : add_switch_offsets(*output_, {.records_lost = records_lost_,
                                                              .processes = processes_->programs(),
                                                              .skews = processes_->switch_skews(),
                                                              .go_on = [this] { return !requests_.stop; }}))
    warnings_.push_back(std::move(warning));
}

void HardwareRecorder::save_missing_code() {
  if (!options_.levels.kernel || kernel_.parts().empty()) return;
  if (!kernel_.has_code(kernel_.parts().front().begin)) return;  // all code is missing: there is a warning
  requests_.stop = false;
  if (auto failure = capture::save_missing_code(*output_, kernel_, [this] { return !requests_.stop; }))
    warnings_.push_back(warn(WarningCode::KERNEL_CODE_MISSING, failure->detail));
}

base::Result<RecordResult> HardwareRecorder::finish() {
  RecordResult result;
  result.exit_status = target_.exit_status().value_or(0);
  result.streams = output_->streams();
  result.trace_bytes = progress_.trace_bytes;
  result.snapshots = snapshots_;
  result.interrupted = interrupted_;
  result.limited = limited_;
  info_.end_ns = real_time_ns();
  info_.clocks = sample_clocks();
  info_.exit_status = target_.exit_status();
  write_info();  // with the TSC frequency measured over the whole recording
  align_switches_to_pips();
  save_missing_code();
  if (options_.argv.empty()) output_->metadata(R"({"program": false})");
  for (trace::Warning& warning : processes_->warnings()) warnings_.push_back(std::move(warning));
  result.warnings = warnings_;
  for (const trace::Warning& warning : warnings_) output_->warning(warning);
  auto size = output_->finish();
  if (!size.ok()) return size.failure();
  result.bundle_bytes = size.value();
  return result;
}

}  // namespace ptkit::capture
