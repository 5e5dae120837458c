#include "capture/linux/ptrace/recorder.h"

#include <pthread.h>
#include <signal.h>

#include <optional>
#include <thread>

#include "capture/linux/ptrace/session.h"

namespace ptkit::capture {

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

}  // namespace ptkit::capture
