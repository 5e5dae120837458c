#include "capture/linux/ptrace/session.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <thread>

#include "capture/linux/process/pt_config.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kFlushTicks = 4000000000;  // one or two seconds
constexpr int kExitTimeoutMs = 5000;

}  // namespace

base::Result<RecordResult> StepRecorder::run() {
  if (auto failure = check(options_)) return *failure;
  auto writer =
      formats::PtkWriter::create(options_.output, {.redact = options_.redact, .owner = options_.owner});
  if (!writer.ok()) return writer.failure();
  // The tracer is one thread that waits for its own children only (__WNOTHREAD). It blocks all signals: the
  // caller's threads handle them.
  sigset_t all;
  sigset_t mask;
  static_cast<void>(::sigfillset(&all));
  static_cast<void>(::pthread_sigmask(SIG_SETMASK, &all, &mask));
  // Constructed here, so that its processes are no children of the tracer thread.
  FileParser parser;
  parser.keep_debug_information(options_.with_debug);
  std::optional<base::Result<RecordResult>> result;
  std::thread tracer(
      [&] { result.emplace(StepSession(*this, std::move(writer.value()), parser).run(&mask)); });
  static_cast<void>(::pthread_sigmask(SIG_SETMASK, &mask, nullptr));
  tracer.join();
  return std::move(*result);
}

void StepRecorder::stop() noexcept {
  stop_ = true;
  // Ends the tracer's waitpid(). The tracer does not deliver this signal.
  if (const int pid = wake_; pid > 0) static_cast<void>(::kill(pid, SIGSTOP));
}

ThreadEncoder::ThreadEncoder(const trace_unit::generator::GeneratorConfig& config, formats::PtkWriter& writer,
                             std::uint32_t stream, ExecutionLog log)
    : stream_(stream),
      tracer_(config, [&writer, stream](base::Bytes bytes) { writer.data(stream, bytes); }),
      log_(std::move(log)) {}

void ThreadEncoder::retire(const code::insn::Insn& insn, std::uint64_t ip, std::uint64_t to,
                           code::insn::ExecMode mode, code::insn::ExecMode next_mode) {
  log_.add(ip);
  tracer_.retire(insn, ip, to, mode, next_mode);
}

void ThreadEncoder::finish() {
  tracer_.generator().flush();
  log_.flush();
}

StepSession::StepSession(StepRecorder& recorder, formats::PtkWriter writer, FileParser& parser)
    : recorder_(recorder),
      options_(recorder.options_),
      writer_(std::move(writer)),
      generator_config_(generator_config(options_)),
      reader_(parser) {}

base::Result<RecordResult> StepSession::run(const void* signal_mask) {
  info_.backend = "step";
  info_.command = options_.argv;
  info_.machine = machine();
  info_.begin_ns = real_time_ns();
  writer_.info(info_);
  writer_.configuration(configuration(options_, calibration_));
  if (const auto failure = begin(signal_mask)) return *failure;
  loop();
  return finish();
}

// Starts the program and waits for its exec(), or for its exit if exec() fails.
std::optional<base::Failure> StepSession::begin(const void* signal_mask) {
  auto launched = launch(options_.argv, signal_mask, options_.quiet);
  if (!launched.ok()) return launched.failure();
  child_ = launched.value().pid;
  recorder_.wake_ = child_;
  launched.value().go = Fd();
  int status = 0;
  while (::waitpid(child_, &status, __WALL | __WNOTHREAD) >= 0 || errno == EINTR) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      const int cause = exec_error(launched.value());
      return base::Failure{base::Status::IO_ERROR, 0,
                           "cannot run " + options_.argv.front() + ": " +
                               (cause != 0 ? std::strerror(cause) : "it was killed before it began")};
    }
    if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8))) break;
    static_cast<void>(
        ::ptrace(PTRACE_CONT, child_, nullptr, (status >> 16) == 0 ? long{WSTOPSIG(status)} : 0L));
  }
  Thread& thread = threads_[child_];
  thread.tid = thread.pid = child_;
  trace::Sideband record;
  record.kind = trace::SidebandKind::PROCESS;
  record.tsc = now();
  record.pid = record.tid = child_;
  writer_.sideband(record);
  on_exec(thread);
  return {};
}

void StepSession::loop() {
  while (!threads_.empty()) {
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (tid < 0) {
      if (errno == EINTR) continue;
      break;
    }
    result_.interrupted = recorder_.stop_.load(std::memory_order_relaxed);
    result_.limited = options_.max_instructions != 0 && result_.instructions >= options_.max_instructions;
    if (result_.interrupted || result_.limited || writer_.failure()) {
      // Of the last stop, only an exit is handled.
      const bool ended = WIFEXITED(status) || WIFSIGNALED(status);
      if (ended) on_stop(tid, status);
      detach_all(ended ? 0 : tid, status);
      break;
    }
    on_stop(tid, status);
    flush_when_due();
  }
}

std::uint64_t StepSession::now() {
  last_tsc_ = std::max(last_tsc_ + 1, read_tsc());
  return last_tsc_;
}

void StepSession::set_time(Thread& thread) {
  const std::uint64_t tsc = now();
  if (thread.encoder) thread.encoder->set_time(tsc);
}

void StepSession::flush_when_due() {
  if (last_tsc_ < next_flush_tsc_) return;
  next_flush_tsc_ = last_tsc_ + kFlushTicks;
  writer_.flush();
}

std::shared_ptr<StepSession::Process> StepSession::make_process(pid_t pid, trace::SpaceId parent) {
  const trace::SpaceId space = next_space_++;
  writer_.space(space, {pid, 0, false});
  jit_names_.begin({pid, space, parent, last_tsc_});
  return std::make_shared<Process>(Process{pid, CodePages(pid, space, writer_, files_, reader_)});
}

ThreadEncoder& StepSession::encoder(Thread& thread) {
  if (thread.encoder) return *thread.encoder;
  const std::uint32_t id = result_.streams++;
  trace::Stream stream;
  stream.pid = thread.pid;
  stream.tid = thread.tid;
  stream.space = thread.process->code.space();
  stream.name = "thread " + std::to_string(thread.tid) + " (" + thread_name(thread.pid, thread.tid) + ")";
  writer_.stream(id, stream);
  ExecutionLog log;
  if (!options_.truth_folder.empty()) {
    log = ExecutionLog(options_.truth_folder + "/stream-" + std::to_string(id) + ".u64");
  }
  thread.encoder = std::make_unique<ThreadEncoder>(generator_config_, writer_, id, std::move(log));
  thread.encoder->set_time(last_tsc_);
  thread.code_changes = thread.process->code.changes();
  return *thread.encoder;
}

void StepSession::end_stream(Thread& thread) {
  if (!thread.encoder) return;
  thread.encoder->finish();
  note(trace::SidebandKind::THREAD, thread, 0, thread_name(thread.pid, thread.tid));
  result_.trace_bytes += thread.encoder->bytes();
  log_failed_ |= thread.encoder->log_failed();
  thread.encoder.reset();
}

void StepSession::note(trace::SidebandKind kind, const Thread& thread, std::int64_t value, std::string text) {
  trace::Sideband record;
  record.kind = kind;
  record.tsc = last_tsc_;
  record.pid = thread.pid;
  record.tid = thread.tid;
  record.value = value;
  record.text = std::move(text);
  writer_.sideband(record);
}

// PTRACE_DETACH needs a stopped thread. The thread `stopped` is stopped already; `status` is from its
// waitpid().
void StepSession::detach_all(pid_t stopped, int status) {
  for (auto& [tid, thread] : threads_) {
    set_time(thread);
    if (thread.encoder) thread.encoder->interrupted(thread.registers.ip);
    end_stream(thread);
    if (tid != stopped) interrupt(tid);
  }
  if (threads_.erase(stopped) != 0 || unannounced_.erase(stopped) != 0) detach_thread(stopped, status);
  while (!threads_.empty()) {
    const pid_t tid = threads_.begin()->first;
    threads_.erase(tid);
    pid_t waited = 0;
    do waited = ::waitpid(tid, &status, __WALL | __WNOTHREAD);
    while (waited < 0 && errno == EINTR);
    if (waited == tid) detach_thread(tid, status);
  }
  for (const pid_t tid : unannounced_) detach(tid, 0);
}

// Detaches a stopped thread and delivers its pending signal, except SIGTRAP of stepping and SIGSTOP of
// request_stop(). After request_stop(), the program gets SIGINT instead.
void StepSession::detach_thread(pid_t tid, int status) {
  if (!WIFSTOPPED(status)) {
    if (tid == child_) end_child(status);
    return;
  }
  const int signal = (status >> 16) == 0 ? WSTOPSIG(status) : 0;
  const bool ours = signal == SIGTRAP || signal == SIGSTOP;
  const bool stop = result_.interrupted && tid == child_;
  detach(tid, stop ? SIGINT : ours ? 0 : signal);
}

void StepSession::end_child(int status) {
  child_ended_ = true;
  result_.exit_status = exit_status_of(status);
}

void StepSession::wait_for_child() {
  for (int waited_ms = 0; !child_ended_; waited_ms += 10) {
    int status = 0;
    const pid_t pid = ::waitpid(child_, &status, WNOHANG | __WALL | __WNOTHREAD);
    if (pid < 0 && errno != EINTR) return;
    if (pid == child_ && !WIFSTOPPED(status)) return end_child(status);
    if (!result_.interrupted && recorder_.stop_.load(std::memory_order_relaxed)) {
      result_.interrupted = true;
      waited_ms = 0;
      static_cast<void>(::kill(child_, SIGINT));
    }
    if (result_.interrupted && waited_ms == kExitTimeoutMs) static_cast<void>(::kill(child_, SIGKILL));
    const timespec pause{0, 10000000};
    static_cast<void>(::nanosleep(&pause, nullptr));
  }
}

// Names of JIT code, as JitNames found them.
void StepSession::write_names() {
  NameList list = jit_names_.read(reader_, now());
  list.number_files([this](const std::string& key, const trace::ImageFile& one) {
    const std::int32_t number = files_.find(key, one.path, [] { return ParsedFile(); }).number;
    writer_.file(static_cast<std::uint32_t>(number), one);
    return number;
  });
  for (const trace::NameRange& range : list.ranges) writer_.names(range);
}

base::Result<RecordResult> StepSession::finish() {
  write_names();
  writer_.flush();
  wait_for_child();
  recorder_.wake_ = 0;
  info_.end_ns = real_time_ns();
  info_.clocks = sample_clocks();
  info_.exit_status = result_.exit_status;
  info_.instructions = result_.instructions;
  writer_.info(info_);
  writer_.configuration(configuration(options_, calibration_));  // again: the clock is more exact now
  auto size = writer_.finish();
  if (!size.ok()) return size.failure();
  result_.bundle_bytes = size.value();
  for (trace::Warning& warning : jit_names_.warnings()) result_.warnings.push_back(std::move(warning));
  for (trace::Warning& warning : reader_.warnings()) result_.warnings.push_back(std::move(warning));
  if (log_failed_)
    result_.warnings.push_back(warn(trace::WarningCode::EXECUTION_LOG_FAILED).at(options_.truth_folder));
  return result_;
}

}  // namespace ptkit::capture
