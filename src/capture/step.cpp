#include "capture/step.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include <bit>
#include <exception>
#include <optional>
#include <thread>

#include "capture/session.h"

namespace ptkit::capture {

namespace {

std::optional<base::Failure> check(const StepOptions& options) {
  const auto bad = [](const std::string& what) { return base::Failure{base::Status::BAD_CONFIG, 0, what}; };
  if (options.argv.empty() || options.argv.front().empty())
    return bad("argv: expected a program, found nothing");
  if (options.output.empty()) return bad("output: expected the path of the bundle to write, found nothing");
  if (!std::has_single_bit(options.psb_period) || options.psb_period < 2048 ||
      options.psb_period > (2048U << 15U)) {
    return bad("psb_period: expected a power of two from 2048 to 67108864 bytes, found " +
               std::to_string(options.psb_period));
  }
  if (options.mtc_period > 15)
    return bad("mtc_period: expected 0 to 15, found " + std::to_string(options.mtc_period));
  if (options.cyc_threshold > 15) {
    return bad("cyc_threshold: expected 0 to 15, found " + std::to_string(options.cyc_threshold));
  }
  struct stat info {};
  if (!options.truth_folder.empty() &&
      (::stat(options.truth_folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))) {
    return base::Failure{base::Status::IO_ERROR, 0,
                         options.truth_folder + ": expected a folder for the log of instructions"};
  }
  return {};
}

}  // namespace

base::Result<StepResult> StepRecorder::run() {
  if (auto failure = check(options_)) return *failure;
  auto writer = formats::PtkWriter::create(options_.output);
  if (!writer.ok()) return writer.failure();
  // The tracer is one thread, and waits for its own children only. Signals are for the threads of the caller.
  sigset_t all;
  sigset_t mask;
  static_cast<void>(::sigfillset(&all));
  static_cast<void>(::pthread_sigmask(SIG_SETMASK, &all, &mask));
  std::optional<base::Result<StepResult>> result;
  std::thread tracer([&] { result.emplace(StepSession(*this, std::move(writer.value())).run(&mask)); });
  static_cast<void>(::pthread_sigmask(SIG_SETMASK, &mask, nullptr));
  tracer.join();
  return std::move(*result);
}

void StepRecorder::request_stop() noexcept {
  stop_ = true;
  // Wakes the tracer, which may be waiting; it does not deliver this signal.
  if (const int pid = wake_; pid > 0) static_cast<void>(::kill(pid, SIGSTOP));
}

}  // namespace ptkit::capture
