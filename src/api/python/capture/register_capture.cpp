// The ptrace recorder (single steps).
#include <chrono>
#include <future>

#include "api/python/bindings.h"
#include "api/python/long_calls.h"
#include "api/python/recording/record_arguments.h"
#include "api/python/recording/record_tuples.h"
#include "capture/linux/ptrace/recorder.h"

namespace ptkit::api::python {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};

// Keeps the exception of a signal handler or progress function until the recording has ended.
bool poll(const py::object& progress, const capture::StepRecorder& recorder, std::exception_ptr& raised) {
  try {
    check_signals();
    if (!progress.is_none()) progress(recorder.instructions());
    return true;
  } catch (...) {
    raised = std::current_exception();
    return false;
  }
}

// Ctrl-C ends a recording and keeps the bundle. Other exceptions are passed to the caller.
void rethrow_all_but_interrupt(const std::exception_ptr& raised) {
  if (raised == nullptr) return;
  try {
    std::rethrow_exception(raised);
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_KeyboardInterrupt)) throw;
  }
}

py::dict record_steps(capture::RecordOptions options, const py::object& progress) {
  capture::StepRecorder recorder(std::move(options));
  std::exception_ptr raised;
  auto result = [&] {
    const py::gil_scoped_release release;
    auto running = std::async(std::launch::async, [&] { return recorder.run(); });
    while (running.wait_for(kPollInterval) != std::future_status::ready) {
      if (raised != nullptr) continue;
      const py::gil_scoped_acquire acquire;
      if (!poll(progress, recorder, raised)) recorder.request_stop();
    }
    return running.get();
  }();
  rethrow_all_but_interrupt(raised);
  return to_dict(value_or_raise(std::move(result)));
}

}  // namespace

void register_capture(py::module_& module) {
  module.def(
      "record_steps",
      [](std::vector<std::string> argv, std::string output, std::string truth, bool return_compression,
         bool tsc, bool mtc, bool cyc, bool tnt_64, std::uint32_t psb_period, std::uint8_t mtc_period,
         std::uint8_t cyc_threshold, std::uint64_t max_instructions, bool quiet, bool redact, bool debug,
         const std::optional<OwnerTuple>& owner, const py::object& progress) {
        capture::RecordOptions options;
        options.argv = std::move(argv);
        options.output = std::move(output);
        options.truth_folder = std::move(truth);
        options.return_compression = return_compression;
        options.tsc = tsc;
        options.mtc = mtc;
        options.cyc = cyc;
        options.tnt_64 = tnt_64;
        options.psb_period = psb_period;
        options.mtc_period = mtc_period;
        options.cyc_threshold = cyc_threshold;
        options.max_instructions = max_instructions;
        options.quiet = quiet;
        options.redact = redact;
        options.debug = debug;
        if (owner) options.owner = owner_of(*owner);
        return record_steps(std::move(options), progress);
      },
      py::kw_only(), py::arg("argv"), py::arg("output"), py::arg("truth") = "",
      py::arg("return_compression") = true, py::arg("tsc") = true, py::arg("mtc") = true,
      py::arg("cyc") = true, py::arg("tnt_64") = false, py::arg("psb_period") = 4096,
      py::arg("mtc_period") = 8, py::arg("cyc_threshold") = 0, py::arg("max_instructions") = 0,
      py::arg("quiet") = false, py::arg("redact") = false, py::arg("debug") = false,
      py::arg("owner") = py::none(), py::arg("progress") = py::none(),
      "Runs a program by single steps and writes a bundle; gives what came of it. Ctrl-C ends the "
      "recording.");
}

}  // namespace ptkit::api::python
