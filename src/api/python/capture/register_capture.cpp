// The ptrace recorder (single steps).
#include <chrono>
#include <future>

#include "api/python/bindings.h"
#include "api/python/long_calls.h"
#include "api/python/recording/record_arguments.h"
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
      [](const py::object& progress, const py::kwargs& given) {
        return record_steps(options_of(given), progress);
      },
      py::kw_only(), py::arg("progress") = py::none(),
      "Runs a program by single steps and writes a bundle; returns the result. `progress` gets the number of "
      "instructions. Ctrl-C ends the recording.");
}

}  // namespace ptkit::api::python
