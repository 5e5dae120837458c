#include "capture/emulator_session.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>

#include "capture/configuration.h"
#include "capture/signals_blocked.h"

namespace ptkit::capture {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{50};             // how late requests may be followed
constexpr milliseconds kBeatInterval{500};    // channel.h: every second at least
constexpr milliseconds kPatience{5000};       // of the program that was asked to end
constexpr milliseconds kChildPatience{5000};  // a child that was forked does not say hello

// Field 52 of /proc/PID/stat, as wait() gives it, as long as nobody has waited for the process.
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

RecordProgress EmulatorRecorder::Session::progress() const noexcept {
  return {instructions_.load(std::memory_order_relaxed), trace_bytes_.load(std::memory_order_relaxed)};
}

base::Result<RecordResult> EmulatorRecorder::Session::run() {
  if (auto failure = check(options_)) return *failure;
  auto program = find_emulated(options_);
  if (!program.ok()) return program.failure();
  auto writer =
      formats::PtkWriter::create(options_.output, {.redact = options_.redact, .owner = options_.owner});
  if (!writer.ok()) return writer.failure();
  const SignalsBlocked blocked(mask_);
  recording_ = std::make_unique<Recording>(options_, std::move(writer.value()), paused_);
  workers_ = std::make_unique<Workers>(*recording_);
  auto result = record(program.value());
  workers_.reset();
  return result;
}

base::Result<RecordResult> EmulatorRecorder::Session::record(const EmulatedProgram& program) {
  auto server = ChannelServer::create();
  if (!server.ok()) return server.failure();
  begin(program);
  auto launched =
      launch_emulated(program, server.value().folder(), server.value().socket_path(), mask_, options_.quiet);
  if (!launched.ok()) return launched.failure();
  root_ = launched.value().pid;
  root_handle_ = std::move(launched.value().handle);
  qemu_version_ = std::async(std::launch::async, [&program] { return qemu_version(program.qemu); });
  loop(server.value());
  workers_.reset();  // they flush the bundle, which is closed now
  return finish(program);
}

void EmulatorRecorder::Session::begin(const EmulatedProgram& program) {
  calibration_.emplace();
  info_.backend = "emulator";
  info_.command = options_.argv;
  info_.machine = machine() + ", " + program.qemu;
  info_.begin_ns = real_time_ns();
  recording_->output().info(info_);
  write_configuration();
  recording_->output().flush();
}

// As far as it is known by now.
void EmulatorRecorder::Session::write_configuration() {
  trace::Configuration known = configuration(options_, *calibration_);
  set_ranges(recording_->ranges(), known);
  recording_->output().configuration(known);
}

void EmulatorRecorder::Session::loop(ChannelServer& server) {
  while (!over()) {
    wait(server);
    while (const auto caller = server.accept()) on_call(server, *caller);
    look_for_ends();
    drop_done();
    reap_root();
    follow_requests();
    beat();
  }
}

bool EmulatorRecorder::Session::over() const { return root_ended_ && watched_.empty(); }

void EmulatorRecorder::Session::wait(const ChannelServer& server) const {
  std::vector<pollfd> files{{server.file(), POLLIN, 0}};
  bool soon = false;
  if (!root_ended_ && root_handle_.get() >= 0) files.push_back({root_handle_.get(), POLLIN, 0});
  for (const Watched& one : watched_) {
    if (one.ended)
      soon = true;  // workers are about to finish it
    else if (one.handle.get() >= 0)
      files.push_back({one.handle.get(), POLLIN, 0});
  }
  const auto limit = soon ? milliseconds(1) : kTick;
  static_cast<void>(::poll(files.data(), files.size(), static_cast<int>(limit.count())));
}

void EmulatorRecorder::Session::on_call(ChannelServer& server, const ChannelServer::Caller& caller) {
  if (caller.gone) return;
  if (!caller.sound) {
    recording_->warn("Process " + std::to_string(caller.pid) +
                     " called the recorder in a way that it does not understand: it is not recorded.");
    return server.refuse(caller);
  }
  // An image that replaces another: that one has told everything.
  for (Watched& one : watched_) {
    if (!one.ended && one.process->pid() == caller.pid)
      end(one, GuestProcess::End::REPLACED, caller.hello.tsc);
  }
  recording_->child_is_here(caller.pid);
  if (recording_->ended()) return server.refuse(caller);
  let_in(caller);
}

void EmulatorRecorder::Session::let_in(const ChannelServer::Caller& caller) {
  const qemu::Hello& hello = caller.hello;
  Watched* parent = hello.parent_arena != 0 ? find_arena(hello.parent_arena) : nullptr;
  const auto inherited = static_cast<std::uint32_t>(hello.first_block);
  const bool inherits = hello.first_block != 0;
  if (inherits &&
      (hello.first_block > UINT32_MAX || parent == nullptr || !parent->process->require(inherited - 1))) {
    recording_->warn("Process " + std::to_string(caller.pid) +
                     ": the code that it has of its parent is not known: it is not recorded.");
    return ChannelServer::refuse(caller);
  }
  ArenaShape shape;
  shape.block_times = recording_->block_times();
  auto arena = Arena::create(shape);
  if (!arena.ok()) {
    recording_->warn("Process " + std::to_string(caller.pid) + " is not recorded: " + arena.failure().detail +
                     ".");
    return ChannelServer::refuse(caller);
  }
  Watched watched;
  watched.number = ++arenas_;
  watched.handle = open_process(caller.pid);
  if (!ChannelServer::welcome(caller, watched.number, arena.value())) return;
  arena.value().close_file();
  GuestProcess::Origin origin;
  origin.pid = caller.pid;
  origin.tsc = hello.tsc;
  if (parent != nullptr) origin.parent = parent->process->pid();
  origin.program = parent != nullptr ? parent->process->program() : std::string(hello.program);
  watched.process =
      std::make_shared<GuestProcess>(*recording_, std::move(arena.value()), std::move(origin),
                                     parent != nullptr ? parent->process.get() : nullptr, inherited);
  workers_->add(watched.process);
  watched_.push_back(std::move(watched));
}

EmulatorRecorder::Session::Watched* EmulatorRecorder::Session::find_arena(std::uint64_t number) {
  const auto at = std::find_if(watched_.begin(), watched_.end(),
                               [number](const Watched& one) { return one.number == number; });
  return at == watched_.end() ? nullptr : &*at;
}

void EmulatorRecorder::Session::look_for_ends() {
  for (Watched& one : watched_) {
    if (one.ended) continue;
    pollfd file{one.handle.get(), POLLIN, 0};
    const bool gone = file.fd >= 0 ? ::poll(&file, 1, 0) > 0 : has_ended(one.process->pid());
    if (gone) end(one, GuestProcess::End::EXITED, read_tsc());
  }
}

void EmulatorRecorder::Session::end(Watched& watched, GuestProcess::End how, std::uint64_t tsc) {
  watched.ended = true;
  watched.ended_at = Clock::now();
  std::optional<int> status;
  if (how == GuestProcess::End::EXITED) status = status_of_zombie(watched.process->pid());
  watched.process->end(how, tsc, status);
  workers_->wake();
}

// Children that were just forked still need the code of their parent.
void EmulatorRecorder::Session::drop_done() {
  std::erase_if(watched_, [&](const Watched& one) {
    if (!one.process->done()) return false;
    if (!recording_->ended() && Clock::now() - one.ended_at < kChildPatience &&
        recording_->child_is_missing(one.process->pid())) {
      return false;
    }
    workers_->remove(one.process.get());
    return true;
  });
}

void EmulatorRecorder::Session::reap_root() {
  if (root_ended_) return;
  int status = 0;
  const pid_t pid = ::waitpid(root_, &status, WNOHANG);
  if (pid == 0 || (pid < 0 && errno == EINTR)) return;
  root_ended_ = true;
  if (pid == root_) exit_status_ = exit_status_of(status);
}

void EmulatorRecorder::Session::follow_requests() {
  const Recording::Counts counts = recording_->counts();
  instructions_.store(counts.instructions, std::memory_order_relaxed);
  trace_bytes_.store(counts.trace_bytes, std::memory_order_relaxed);
  if (stop_asked_) recording_->end(Recording::Ending::INTERRUPTED);
  if (detach_asked_) recording_->end(Recording::Ending::DETACHED);
  if (recording_->ended() && !recording_ended_) end_recording();
  if (snapshot_asked_.exchange(false)) recording_->ask_for_snapshot();
  if (recording_->snapshot_is_due()) recording_->snapshot();
  if (stop_asked_ && watched_.empty() && !root_ended_) press_root();
}

// What runs, runs on; what was executed until now is read.
void EmulatorRecorder::Session::end_recording() {
  recording_ended_ = true;
  for (Watched& one : watched_) {
    one.process->arena().stop();
    if (!one.ended) end(one, GuestProcess::End::CUT, read_tsc());
  }
}

void EmulatorRecorder::Session::press_root() {
  if (!signalled_) {
    interrupted_ = true;
    signalled_ = Clock::now();
    static_cast<void>(::kill(root_, SIGINT));
  } else if (Clock::now() - *signalled_ >= kPatience) {
    static_cast<void>(::kill(root_, SIGKILL));
  }
}

void EmulatorRecorder::Session::beat() {
  if (Clock::now() - last_beat_ < kBeatInterval) return;
  last_beat_ = Clock::now();
  for (Watched& one : watched_) one.process->arena().beat();
}

base::Result<RecordResult> EmulatorRecorder::Session::finish(const EmulatedProgram& program) {
  const std::string version = qemu_version_.get();
  if (arenas_ == 0 && !recording_->ended()) {
    return base::Failure{
        base::Status::UNSUPPORTED, 0,
        program.qemu + (version.empty() ? "" : " (version " + version + ")") + " ended with status " +
            std::to_string(exit_status_) +
            " without having loaded ptkit's plugin; it has to be 6.0 or newer and built with "
            "plugins (what it says is on the standard error output)"};
  }
  const Recording::Counts counts = recording_->counts();
  RecordResult result;
  result.exit_status = exit_status_;
  result.instructions = counts.instructions;
  result.branches = counts.branches;
  result.trace_bytes = counts.trace_bytes;
  result.streams = recording_->output().streams();
  result.interrupted = interrupted_ || recording_->ending() == Recording::Ending::INTERRUPTED;
  result.limited = recording_->ending() == Recording::Ending::LIMITED;
  result.snapshots = recording_->snapshots();
  info_.machine = machine() + ", QEMU " + version;
  info_.end_ns = real_time_ns();
  info_.exit_status = exit_status_;
  info_.instructions = counts.instructions;
  recording_->output().info(info_);
  write_configuration();  // clock and ranges are known better now
  result.unmatched = recording_->warn_of_missing();
  for (const std::string& warning : recording_->output().reader().warnings()) recording_->warn(warning);
  result.warnings = recording_->warnings();
  for (const std::string& warning : result.warnings) recording_->output().warning(warning);
  auto size = recording_->output().finish();
  if (!size.ok()) return size.failure();
  result.dropped_bytes = recording_->output().dropped_bytes();
  result.trace_bytes -= result.dropped_bytes;
  result.bundle_bytes = size.value();
  return result;
}

}  // namespace ptkit::capture
