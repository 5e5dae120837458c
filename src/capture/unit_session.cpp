#include "capture/unit_session.h"

#include <poll.h>

#include <algorithm>
#include <iterator>

#include "capture/configuration.h"
#include "capture/filter_places.h"
#include "capture/signals_blocked.h"
#include "capture/unit_places.h"

namespace ptkit::capture {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{20};  // how late requests may be followed
constexpr milliseconds kFlushInterval{1000};
constexpr milliseconds kPatience{5000};  // of a program that was asked to end

// By how many ticks times of switches may be wrong anyway. When recording begins, the TSC's frequency may be
// known from perf's clock alone.
std::uint64_t usual_width(trace::Clock clock) {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  if (clock.tsc_hz == 0 && clock.perf_time_known && clock.time_mult != 0)
    clock.tsc_hz = (kNsPerSecond << clock.time_shift) / clock.time_mult;
  return clock.tsc_hz != 0 ? formats::switch_doubt(clock) : 0;
}

}  // namespace

base::Result<RecordResult> UnitRecorder::Session::run() {
  if (auto failure = check(options_)) return *failure;
  if (auto failure = units_->prepare(options_, warnings_)) return *failure;
  auto writer =
      formats::PtkWriter::create(options_.output, {.redact = options_.redact, .owner = options_.owner});
  if (!writer.ok()) return writer.failure();
  output_ = std::make_unique<BundleOutput>(std::move(writer.value()), 0);
  sigset_t mask{};
  const SignalsBlocked blocked(mask);
  if (auto failure = record(mask)) {
    units_.reset();  // an open session would go on
    target_.kill();
    return *failure;
  }
  return finish();
}

UnitRecorder::Session::Problem UnitRecorder::Session::record(const sigset_t& mask) {
  calibration_.emplace();
  if (options_.hardware.kernel) {
    if (auto failure = kernel_.look())
      warnings_.push_back("Kernel code is missing: " + failure->detail + ".");
    kernel_.save_names(*output_);
  }
  if (auto failure = find_target(mask)) return failure;
  if (auto failure = configure()) return failure;
  const std::vector<trace::Stream> streams = units_->streams();
  const bool by_place = std::any_of(streams.begin(), streams.end(),
                                    [](const trace::Stream& one) { return one.switches_by_offset; });
  processes_ = std::make_unique<SystemProcesses>(*output_, options_.hardware.user, by_place,
                                                 usual_width(configuration_.clock));
  processes_->while_saving([this] { keep_up(); });
  describe();
  make_streams();
  told_ = units_->tells_at_once();
  save_processes();
  if (auto failure = begin()) return failure;
  auto failure = loop();
  if (!failure) failure = end();
  // What is in the bundle by now is kept.
  if (failure) warnings_.push_back("Recording ended early: " + failure->detail + ".");
  units_->stop();
  take_records(trace::kTscMax);
  processes_->save_made_code();
  tell_switches();
  trace_bytes_ = units_->trace_bytes();
  close_units();
  wait_for_program();
  return {};
}

// Others may want the trace units as soon as nothing is recorded any more.
void UnitRecorder::Session::close_units() {
  for (std::string& warning : units_->warnings()) warnings_.push_back(std::move(warning));
  records_lost_ = units_->lost_records() != 0;
  units_.reset();
}

UnitRecorder::Session::Problem UnitRecorder::Session::find_target(const sigset_t& mask) {
  const bool launches = !options_.argv.empty();
  if (!launches && options_.hardware.pid == 0) return {};
  auto target = launches ? Target::launch(options_, mask) : Target::attach(options_.hardware.pid);
  if (!target.ok()) return target.failure();
  target_ = std::move(target.value());
  if (launches && needs_libraries(options_, program_path(target_.pid()))) return target_.run_to_entry();
  return {};
}

UnitRecorder::Session::Problem UnitRecorder::Session::configure() {
  auto filters = find_filters(options_, target_.pid(), kernel_);
  if (!filters.ok()) return filters.failure();
  auto triggers = find_triggers(options_, target_.pid(), kernel_);
  if (!triggers.ok()) return triggers.failure();
  const int pid = options_.hardware.whole_cpus() ? 0 : target_.pid();
  if (auto failure = units_->configure(pid, filters.value())) return failure;
  // The kernel was given a number: if the process was still there after that, it was this one's.
  if (!target_.ours() && target_.pid() != 0 && target_.has_ended())
    return base::Failure{base::Status::BAD_CONFIG, 0, "pid: the process has ended"};
  configuration_ = units_->configuration();
  return units_->watch(triggers.value(), target_.pid());
}

void UnitRecorder::Session::write_info() {
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

void UnitRecorder::Session::describe() {
  info_.backend = units_->name();
  info_.command = options_.argv;
  info_.machine = machine();
  info_.begin_ns = real_time_ns();
  write_info();
  if (target_.pid() != 0) processes_->begin(target_.pid(), read_tsc());
}

void UnitRecorder::Session::save_processes() {
  if (target_.pid() != 0) processes_->save_code(target_.pid());
  if (options_.hardware.whole_cpus()) processes_->find_all(read_tsc());
}

void UnitRecorder::Session::make_streams() {
  for (trace::Stream& stream : units_->streams()) {
    const std::size_t index = streams_.size();
    streams_.emplace_back(0, stream);
    if (target_.pid() != 0 && !options_.hardware.whole_cpus()) {
      stream.pid = target_.pid();
      stream.space = processes_->space_of(target_.pid());
    }
    streams_.back().first = output_->stream(stream);
    units_->set_stream(index, streams_.back().first);
  }
}

UnitRecorder::Session::Problem UnitRecorder::Session::begin() {
  hits_.assign(options_.triggers.size(), 0);
  waits_ = std::any_of(options_.triggers.begin(), options_.triggers.end(),
                       [](const TriggerRequest& one) { return one.action == TriggerRequest::Action::START; });
  if (auto failure = start_units()) return failure;
  paused_ = waits_;
  if (auto failure = units_->notice()) return failure;
  if (options_.hardware.limit_ms != 0) deadline_ = Clock::now() + milliseconds(options_.hardware.limit_ms);
  last_flush_ = Clock::now();
  output_->flush();
  target_.go();
  pid_ = target_.pid();
  started_ = true;
  return {};
}

// The kernel's code is saved as it is while tracing, and before that if it is so by then.
UnitRecorder::Session::Problem UnitRecorder::Session::start_units() {
  const bool begins_first = !units_->tells_at_once();
  if (begins_first) {
    if (auto failure = units_->start()) return failure;
    told_ = true;
    if (!options_.hardware.kernel) return {};
    if (auto failure = units_->pause()) return failure;
  }
  save_kernel(trace::kTscMin);
  // What was told meanwhile must not take the room of what comes.
  if (auto failure = empty_buffers()) return failure;
  if (begins_first) return units_->resume();
  return waits_ ? Problem() : units_->start();
}

void UnitRecorder::Session::save_kernel(std::uint64_t tsc) {
  if (!options_.hardware.kernel || kernel_.parts().empty()) return;
  if (auto failure = kernel_.save(*output_, tsc, [this] { keep_up(); }))
    warnings_.push_back("Kernel code is missing: " + failure->detail + ".");
}

UnitRecorder::Session::Problem UnitRecorder::Session::loop() {
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

bool UnitRecorder::Session::over() {
  interrupted_ = interrupted_ || stop_asked_;
  limited_ = limited_ || (deadline_ && Clock::now() >= *deadline_);
  if (interrupted_ || limited_ || detach_asked_ || output_->failed() || units_->failed()) return true;
  if (target_.pid() == 0 || !target_.has_ended()) return false;
  // What it began is of interest as long as somebody tells of it.
  const bool told = units_->tells() && options_.hardware.children;
  if (!told) return true;
  processes_->forget_ended();
  return !processes_->alive(target_.pid());
}

UnitRecorder::Session::Problem UnitRecorder::Session::follow_requests() {
  const bool wanted = pause_asked_ || waits_;
  if (wanted != paused_) {
    if (auto failure = wanted ? units_->pause() : units_->resume()) return failure;
    paused_ = wanted;
  }
  if (snapshot_asked_.exchange(false)) return snapshot();
  return {};
}

UnitRecorder::Session::Problem UnitRecorder::Session::drain() {
  const std::uint64_t now = read_tsc();
  if (auto failure = empty_buffers()) return failure;
  // A processor may have told something before that, while the ring before its own was read.
  take_records(horizon_);
  horizon_ = now;
  return {};
}

UnitRecorder::Session::Problem UnitRecorder::Session::empty_buffers() {
  if (auto failure = units_->drain(*output_, records_)) return failure;
  for (const std::uint32_t trigger : units_->take_hits()) hit(trigger);
  trace_bytes_ = units_->trace_bytes();
  emptied_ = Clock::now();
  return {};
}

// While something takes long. What fails now fails again when it is asked next.
void UnitRecorder::Session::keep_up() {
  if (told_ && Clock::now() - emptied_ >= kTick) static_cast<void>(empty_buffers());
}

// Stops and snapshots count what happens while recording is on.
void UnitRecorder::Session::hit(std::uint32_t trigger) {
  using Action = TriggerRequest::Action;
  const TriggerRequest& request = options_.triggers[trigger];
  const bool counts = request.action == Action::START ? waits_ : !paused_;
  if (!counts || !request.is_due(++hits_[trigger])) return;
  if (request.action == Action::START) waits_ = false;
  if (request.action == Action::STOP) limited_ = true;
  if (request.action == Action::SNAPSHOT) snapshot_asked_ = true;
}

void UnitRecorder::Session::take_records(std::uint64_t before) {
  std::stable_sort(records_.begin(), records_.end(),
                   [](const ToldRecord& a, const ToldRecord& b) { return a.first.tsc < b.first.tsc; });
  const auto end = std::find_if(records_.begin(), records_.end(),
                                [before](const ToldRecord& one) { return one.first.tsc >= before; });
  const std::vector<ToldRecord> due(std::make_move_iterator(records_.begin()), std::make_move_iterator(end));
  records_.erase(records_.begin(), end);
  for (const auto& [record, stream] : due) {
    if (options_.hardware.kernel) follow_kernel(record);
    processes_->take(record, stream);
    keep_up();
  }
}

void UnitRecorder::Session::follow_kernel(const SystemRecord& record) {
  using Kind = SystemRecord::Kind;
  if (record.kind == Kind::MODULE && !kernel_.look()) save_kernel(record.tsc);
  if (record.kind == Kind::KERNEL_CODE)
    kernel_.add_made(*output_, record.tsc, record.text, record.address, record.address + record.bytes);
  if (record.kind == Kind::KERNEL_POKE)
    kernel_.poke(*output_, record.tsc, record.address, record.old_code, record.new_code);
}

void UnitRecorder::Session::tell_switches() {
  for (const auto& [number, stream] : streams_) {
    trace::Stream more = stream;
    more.switches = processes_->take_switches(number);
    if (!more.switches.empty()) output_->add_to(number, more);
  }
}

UnitRecorder::Session::Problem UnitRecorder::Session::snapshot() {
  if (options_.ring_bytes == 0) return {};
  if (!paused_) {
    if (auto failure = units_->pause()) return failure;
  }
  if (auto failure = units_->collect(*output_, records_)) return failure;
  ++snapshots_;
  if (!paused_) {
    if (auto failure = units_->resume()) return failure;
  }
  tell_switches();
  output_->flush();
  return {};
}

UnitRecorder::Session::Problem UnitRecorder::Session::end() {
  // A snapshot that was asked for right before the end is in what is collected here.
  snapshots_ += snapshot_asked_ && options_.ring_bytes != 0 ? 1U : 0U;
  if (auto failure = units_->pause()) return failure;
  if (auto failure = units_->drain(*output_, records_)) return failure;
  if (auto failure = units_->collect(*output_, records_)) return failure;
  if (const std::size_t changed = kernel_.changed_pages(); changed != 0) {
    warnings_.push_back("The kernel changed its own code while recording (" + std::to_string(changed) +
                        (changed == 1 ? " page" : " pages") +
                        "): rows of kernel code may be wrong or missing there.");
  }
  return {};
}

// Recording has ended, the program may run on, or is asked to end.
void UnitRecorder::Session::wait_for_program() {
  if (!target_.ours()) return;
  std::optional<Clock::time_point> asked;
  while (!target_.has_ended()) {
    interrupted_ = interrupted_ || stop_asked_;
    if (interrupted_ && !asked) {
      target_.signal(SIGINT);
      asked = Clock::now();
    }
    if (asked && Clock::now() - *asked >= kPatience) target_.signal(SIGKILL);
    pollfd ended{target_.handle(), POLLIN, 0};
    static_cast<void>(::poll(&ended, 1, static_cast<int>(kTick.count())));
  }
}

// Whoever wants an end from here on does not want to wait for it.
void UnitRecorder::Session::place_switches() {
  if (!options_.hardware.kernel || processes_->know_tables()) return;
  stop_asked_ = false;
  for (std::string& warning : add_places(*output_, {.records_lost = records_lost_,
                                                   .processes = processes_->programs(),
                                                   .widths = processes_->switch_widths(),
                                                   .go_on = [this] { return !stop_asked_; }}))
    warnings_.push_back(std::move(warning));
}

base::Result<RecordResult> UnitRecorder::Session::finish() {
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
  place_switches();
  if (options_.argv.empty()) output_->metadata(R"({"program": false})");
  for (std::string& warning : processes_->warnings()) warnings_.push_back(std::move(warning));
  result.warnings = warnings_;
  for (const std::string& warning : warnings_) output_->warning(warning);
  auto size = output_->finish();
  if (!size.ok()) return size.failure();
  result.bundle_bytes = size.value();
  return result;
}

}  // namespace ptkit::capture
