#include "capture/linux/emulator/recorder.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "base/posix/signals_blocked.h"
#include "capture/common/recorded_filter.h"
#include "capture/linux/process/pt_config.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRequestInterval{50};      // maximum delay of a request
constexpr milliseconds kHeartbeatInterval{500};   // channel.h: at least every second
constexpr milliseconds kChildHelloTimeout{5000};  // how long a parent's code waits for a forked child

// The exit status of a zombie: field 52 (exit_code) of /proc/PID/stat, encoded as by wait(). The entry exists
// until the parent waits for the process.
std::optional<int> status_of_zombie(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size() || text[name_end + 2] != 'Z') return {};
  const std::size_t last = text.rfind(' ') + 1;
  int status = 0;
  if (std::from_chars(text.data() + last, text.data() + text.size(), status).ec != std::errc()) return {};
  return exit_status_of(status);
}

bool has_ended(pid_t pid) { return ::kill(pid, 0) != 0 || status_of_zombie(pid).has_value(); }

}  // namespace

base::Result<RecordResult> EmulatorRecorder::run() {
  if (auto failure = check(options_)) return *failure;
  auto program = find_emulated(options_);
  if (!program.ok()) return program.failure();
  auto writer =
      formats::PtkWriter::create(options_.output, {.redact = options_.redact, .owner = options_.owner});
  if (!writer.ok()) return writer.failure();
  const base::SignalsBlocked blocked(mask_);
  parser_.emplace();
  parser_->keep_debug_information(options_.with_debug);
  recording_ =
      std::make_unique<EmulatorRecording>(options_, std::move(writer.value()), *parser_, requests_.pause);
  workers_ = std::make_unique<Workers>(*recording_);
  auto result = record(program.value());
  // The parser's processes must not outlive the recording. What refers to the parser is destroyed first.
  workers_.reset();
  processes_.clear();
  recording_.reset();
  parser_.reset();
  return result;
}

base::Result<RecordResult> EmulatorRecorder::record(const EmulatedProgram& program) {
  auto server = ChannelServer::create();
  if (!server.ok()) return server.failure();
  begin(program);
  auto launched =
      launch_emulated(program, server.value().folder(), server.value().socket_path(), mask_, options_.quiet);
  if (!launched.ok()) return launched.failure();
  progress_.pid = launched.value().pid;
  progress_.started = true;
  child_handle_ = std::move(launched.value().handle);
  qemu_version_ = std::async(std::launch::async, [&program] { return qemu_version(program.qemu); });
  loop(server.value());
  workers_.reset();  // they flush the bundle, which is closed now
  return finish(program);
}

void EmulatorRecorder::begin(const EmulatedProgram& program) {
  calibration_.emplace();
  info_.backend = "emulator";
  info_.command = options_.argv;
  info_.machine = machine() + ", " + program.qemu;
  info_.begin_ns = real_time_ns();
  recording_->output().info(info_);
  write_configuration();
  recording_->output().flush();
}

// Writes what is known of the configuration so far.
void EmulatorRecorder::write_configuration() {
  trace::Configuration known = configuration(options_, *calibration_);
  set_ranges(recording_->ranges(), known);
  recording_->output().configuration(known);
}

void EmulatorRecorder::loop(ChannelServer& server) {
  while (!finished()) {
    wait(server);
    while (const auto client = server.accept()) on_connect(server, *client);
    detect_exits();
    remove_finished();
    reap_child();
    handle_requests();
    look_at_names();
    heartbeat();
  }
}

bool EmulatorRecorder::finished() const { return child_ended_ && processes_.empty(); }

void EmulatorRecorder::wait(const ChannelServer& server) const {
  std::vector<pollfd> files{{server.file(), POLLIN, 0}};
  bool soon = false;
  if (!child_ended_ && child_handle_.get() >= 0) files.push_back({child_handle_.get(), POLLIN, 0});
  for (const TrackedProcess& one : processes_) {
    if (one.ended)
      soon = true;  // workers are about to finish it
    else if (one.handle.get() >= 0)
      files.push_back({one.handle.get(), POLLIN, 0});
  }
  const auto limit = soon ? milliseconds(1) : kRequestInterval;
  static_cast<void>(::poll(files.data(), files.size(), static_cast<int>(limit.count())));
}

void EmulatorRecorder::on_connect(ChannelServer& server, const ChannelServer::Client& client) {
  if (client.gone) return;
  if (!client.valid) {
    recording_->add_warning(warn(WarningCode::GUEST_CALL_INVALID).at(process_label(client.pid)));
    return server.refuse(client);
  }
  // exec(): the old image of the process has written all its records.
  for (TrackedProcess& one : processes_) {
    if (!one.ended && one.process->pid() == client.pid)
      end(one, GuestProcess::End::REPLACED, client.hello.tsc);
  }
  recording_->child_connected(client.pid);
  if (recording_->ended()) return server.refuse(client);
  accept(client);
}

void EmulatorRecorder::accept(const ChannelServer::Client& client) {
  const plugin::Hello& hello = client.hello;
  TrackedProcess* parent = hello.parent_memory != 0 ? find_memory(hello.parent_memory) : nullptr;
  const auto inherited = static_cast<std::uint32_t>(hello.first_block);
  const bool inherits = hello.first_block != 0;
  if (inherits &&
      (hello.first_block > UINT32_MAX || parent == nullptr || !parent->process->read_log_to(inherited - 1))) {
    recording_->add_warning(warn(WarningCode::GUEST_PARENT_UNKNOWN).at(process_label(client.pid)));
    return ChannelServer::refuse(client);
  }
  SharedMemoryLayout layout;
  layout.block_times = recording_->block_times();
  layout.line_bytes = recording_->line_bytes();
  auto shared = SharedMemory::create(layout);
  if (!shared.ok()) {
    recording_->add_warning(
        warn(WarningCode::GUEST_NOT_RECORDED, shared.failure().detail).at(process_label(client.pid)));
    return ChannelServer::refuse(client);
  }
  TrackedProcess tracked;
  tracked.number = ++memories_;
  tracked.handle = open_process(client.pid);
  if (!ChannelServer::welcome(client, tracked.number, shared.value())) return;
  shared.value().close_file();
  GuestProcess::Origin origin;
  origin.pid = client.pid;
  origin.tsc = hello.tsc;
  if (parent != nullptr) origin.parent = parent->process->pid();
  origin.program = parent != nullptr ? parent->process->program() : std::string(hello.program);
  tracked.process =
      std::make_shared<GuestProcess>(*recording_, std::move(shared.value()), std::move(origin),
                                     parent != nullptr ? parent->process.get() : nullptr, inherited);
  recording_->jit_names().begin({client.pid, tracked.process->space(),
                                 parent != nullptr ? parent->process->space() : trace::kAnySpace, hello.tsc});
  workers_->add(tracked.process);
  processes_.push_back(std::move(tracked));
}

EmulatorRecorder::TrackedProcess* EmulatorRecorder::find_memory(std::uint64_t number) {
  const auto at = std::find_if(processes_.begin(), processes_.end(),
                               [number](const TrackedProcess& one) { return one.number == number; });
  return at == processes_.end() ? nullptr : &*at;
}

void EmulatorRecorder::detect_exits() {
  for (TrackedProcess& one : processes_) {
    if (one.ended) continue;
    pollfd file{one.handle.get(), POLLIN, 0};
    const bool gone = file.fd >= 0 ? ::poll(&file, 1, 0) > 0 : has_ended(one.process->pid());
    if (gone) end(one, GuestProcess::End::EXITED, read_tsc());
  }
}

void EmulatorRecorder::end(TrackedProcess& tracked, GuestProcess::End reason, std::uint64_t tsc) {
  tracked.ended = true;
  tracked.ended_at = Clock::now();
  std::optional<int> status;
  if (reason == GuestProcess::End::EXITED) status = status_of_zombie(tracked.process->pid());
  recording_->jit_names().end(tracked.process->space(), read_tsc());
  tracked.process->end(reason, tsc, status);
  workers_->wake();
}

// Forked children that have not connected yet still need the code of their parent.
void EmulatorRecorder::remove_finished() {
  std::erase_if(processes_, [&](const TrackedProcess& one) {
    if (!one.process->done()) return false;
    if (!recording_->ended() && Clock::now() - one.ended_at < kChildHelloTimeout &&
        recording_->misses_child(one.process->pid())) {
      return false;
    }
    workers_->remove(one.process.get());
    return true;
  });
}

void EmulatorRecorder::reap_child() {
  if (child_ended_) return;
  int status = 0;
  const pid_t pid = ::waitpid(progress_.pid, &status, WNOHANG);
  if (pid == 0 || (pid < 0 && errno == EINTR)) return;
  child_ended_ = true;
  if (pid == progress_.pid) exit_status_ = exit_status_of(status);
}

void EmulatorRecorder::handle_requests() {
  const EmulatorRecording::Counts counts = recording_->counts();
  progress_.instructions.store(counts.instructions, std::memory_order_relaxed);
  progress_.trace_bytes.store(counts.trace_bytes, std::memory_order_relaxed);
  if (requests_.stop) recording_->end(EmulatorRecording::Ending::INTERRUPTED);
  if (requests_.detach) recording_->end(EmulatorRecording::Ending::DETACHED);
  if (recording_->ended() && !recording_ended_) end_recording();
  if (requests_.snapshot.exchange(false)) recording_->request_snapshot();
  if (recording_->snapshot_requested()) recording_->snapshot();
  if (requests_.stop && processes_.empty() && !child_ended_) terminate_child();
}

// Programs continue unrecorded. Workers read the lines written so far.
void EmulatorRecorder::end_recording() {
  recording_ended_ = true;
  for (TrackedProcess& one : processes_) {
    one.process->shared().stop();
    if (!one.ended) end(one, GuestProcess::End::CUT, read_tsc());
  }
}

void EmulatorRecorder::terminate_child() {
  if (!signalled_) {
    interrupted_ = true;
    signalled_ = Clock::now();
    static_cast<void>(::kill(progress_.pid, SIGINT));
  } else if (Clock::now() - *signalled_ >= kExitTime) {
    static_cast<void>(::kill(progress_.pid, SIGKILL));
  }
}

void EmulatorRecorder::look_at_names() {
  if (Clock::now() - last_look_ < kRequestInterval) return;
  last_look_ = Clock::now();
  recording_->jit_names().look(read_tsc());
}

void EmulatorRecorder::heartbeat() {
  if (Clock::now() - last_heartbeat_ < kHeartbeatInterval) return;
  last_heartbeat_ = Clock::now();
  for (TrackedProcess& one : processes_) one.process->shared().heartbeat();
}

base::Result<RecordResult> EmulatorRecorder::finish(const EmulatedProgram& program) {
  const std::string version = qemu_version_.get();
  if (memories_ == 0 && !recording_->ended()) {
    return base::Failure{
        base::Status::UNSUPPORTED, 0,
        program.qemu + (version.empty() ? "" : " (version " + version + ")") + " ended with status " +
            std::to_string(exit_status_) +
            " without having loaded ptkit's plugin; it has to be 6.0 or newer and built with "
            "plugins (what it says is on the standard error output)"};
  }
  const EmulatorRecording::Counts counts = recording_->counts();
  RecordResult result;
  result.exit_status = exit_status_;
  result.instructions = counts.instructions;
  result.branches = counts.branches;
  result.trace_bytes = counts.trace_bytes;
  result.streams = recording_->output().streams();
  result.interrupted = interrupted_ || recording_->ending() == EmulatorRecording::Ending::INTERRUPTED;
  result.limited = recording_->ending() == EmulatorRecording::Ending::LIMITED;
  result.snapshots = recording_->snapshots();
  info_.machine = machine() + ", QEMU " + version;
  info_.end_ns = real_time_ns();
  info_.clocks = sample_clocks();
  info_.exit_status = exit_status_;
  info_.instructions = counts.instructions;
  recording_->output().info(info_);
  write_configuration();  // again: the clock's frequency and the ranges are complete now
  JitNames& names = recording_->jit_names();
  recording_->output().names(names.read(recording_->output().reader(), read_tsc()));
  for (trace::Warning& warning : names.warnings()) recording_->add_warning(std::move(warning));
  result.unmatched = recording_->warn_of_missing();
  for (trace::Warning& warning : recording_->output().reader().warnings())
    recording_->add_warning(std::move(warning));
  result.warnings = recording_->warnings();
  for (const trace::Warning& warning : result.warnings) recording_->output().warning(warning);
  auto size = recording_->output().finish();
  if (!size.ok()) return size.failure();
  result.dropped_bytes = recording_->output().dropped_bytes();
  result.trace_bytes -= result.dropped_bytes;
  result.bundle_bytes = size.value();
  return result;
}

}  // namespace ptkit::capture
