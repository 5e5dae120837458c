#include "client/recorder.h"

#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "capture/common/errors.h"
#include "capture/windows/counted.h"
#include "capture/windows/session.h"
#include "client/console.h"
#include "client/device.h"
#include "client/image_files.h"
#include "client/kernel_logger.h"
#include "client/machine.h"
#include "client/program.h"
#include "client/wide.h"

namespace ptkit::client {

namespace {

using Problem = std::optional<base::Failure>;

constexpr DWORD kLongestWaitMs = 100;      // a wait of the driver ends sooner
constexpr DWORD kWaitForProgramMs = 5000;  // after Ctrl-C, which the program gets, too
constexpr ULONGLONG kFlushMs = 1000;
constexpr ULONGLONG kProgressMs = 250;

class Recording {
 public:
  Recording(Device& device, capture::WindowsSession& session, Console& console, Program* program,
            std::uint64_t limit_ms)
      : device_(device),
        session_(session),
        console_(console),
        program_(program),
        limit_ms_(limit_ms),
        begin_(::GetTickCount64()) {}

  [[nodiscard]] Problem run();
  [[nodiscard]] bool interrupted() const noexcept { return interrupted_; }

 private:
  [[nodiscard]] Problem handle(DWORD signalled);
  void report();

  Device& device_;
  capture::WindowsSession& session_;
  Console& console_;
  Program* program_;
  std::uint64_t limit_ms_;
  ULONGLONG begin_;
  ULONGLONG flushed_ = 0;
  ULONGLONG shown_ = 0;
  bool interrupted_ = false;
  bool ended_ = false;
};

Problem Recording::handle(DWORD signalled) {
  enum : DWORD { STOP = WAIT_OBJECT_0, SNAPSHOT, HAPPENED, PROGRAM };
  switch (signalled) {
    case STOP:
      interrupted_ = ended_ = true;
      return {};
    case SNAPSHOT:
      return session_.snapshot();
    case HAPPENED:
      ended_ = (device_.end_wait() & PTKIT_EVENT_ENDED) != 0;
      return {};
    case PROGRAM:
      ended_ = true;
      return {};
    case WAIT_FAILED:
      return last_failure("wait for the driver");
    default:
      return {};
  }
}

void Recording::report() {
  const ULONGLONG now = ::GetTickCount64();
  if (now - flushed_ >= kFlushMs) {
    session_.flush();
    flushed_ = now;
  }
  if (now - shown_ >= kProgressMs) {
    console_.progress(session_.trace_bytes());
    shown_ = now;
  }
  if (limit_ms_ != 0 && now - begin_ >= limit_ms_) ended_ = true;
  if (session_.failed()) ended_ = true;
}

Problem Recording::run() {
  std::array<HANDLE, 4> handles{console_.stop(), console_.snapshot(), device_.happened(), nullptr};
  DWORD count = 3;
  if (program_ != nullptr) handles[count++] = program_->process();
  while (!ended_) {
    device_.begin_wait();
    const DWORD signalled = ::WaitForMultipleObjects(count, handles.data(), FALSE, kLongestWaitMs);
    if (auto failure = handle(signalled)) return failure;
    if (auto failure = session_.drain()) return failure;
    report();
  }
  return {};
}

base::Result<std::optional<Program>> find_program(const capture::RecordOptions& options) {
  if (!options.argv.empty()) {
    auto started = Program::start(options.argv);
    if (!started.ok()) return started.failure();
    return std::optional<Program>(std::move(started.value()));
  }
  if (options.hardware.pid == 0) return std::optional<Program>();
  auto attached = Program::attach(options.hardware.pid);
  if (!attached.ok()) return attached.failure();
  return std::optional<Program>(std::move(attached.value()));
}

// Whole processors are traced, whatever the program is.
int traced_pid(const capture::RecordOptions& options, const std::optional<Program>& program) {
  return program && !options.hardware.whole_cpus() ? program->pid() : 0;
}

base::Result<int> run(const capture::WindowsCommand& command, Device& device,
                      capture::WindowsSession& session) {
  const capture::RecordOptions& options = command.options.record;
  auto program = find_program(options);
  if (!program.ok()) return program.failure();
  std::optional<Program>& target = program.value();
  Console console(command.quiet);
  if (auto failure = session.begin(traced_pid(options, target), clocks_now())) return *failure;
  if (target) {
    if (auto failure = target->resume()) return *failure;
  }
  Recording recording(device, session, console, target ? &*target : nullptr, options.hardware.limit_ms);
  if (auto failure = recording.run()) return *failure;
  const bool own = !options.argv.empty();
  const DWORD wait_ms = recording.interrupted() ? kWaitForProgramMs : 0;
  const std::optional<int> status = own ? target->exit_status(wait_ms) : std::nullopt;
  auto result = session.end(status, clocks_now());
  if (!result.ok()) return result.failure();
  for (const std::string& warning : session.warnings()) console.say("warning: " + warning);
  if (own && !status) console.say("the program runs on");
  const capture::RecordResult& end = result.value();
  const std::string snapshots = end.snapshots == 0 ? "" : capture::counted(end.snapshots, "snapshot") + ", ";
  console.say(options.output + ": " + std::to_string(end.trace_bytes) + " bytes of trace in " +
              capture::counted(end.streams, "stream") + ", " + snapshots + std::to_string(end.bundle_bytes) +
              " bytes in all");
  return status.value_or(0);
}

}  // namespace

base::Result<int> record(const capture::WindowsCommand& command) {
  enable_privileges();
  auto device = Device::open();
  if (!device.ok()) return device.failure();
  ImageFiles files;
  KernelLogger events;
  capture::WindowsSession session(*device.value(), files, events, command.options, this_machine());
  if (auto failure = session.prepare()) return *failure;
  auto result = run(command, *device.value(), session);
  // What was recorded until a failure stays; without a beginning there is nothing.
  if (!result.ok() && !session.began()) static_cast<void>(std::remove(command.options.record.output.c_str()));
  return result;
}

}  // namespace ptkit::client
