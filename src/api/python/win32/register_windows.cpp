// The recorder with the Windows driver, and what that driver says of itself.
#include <atomic>
#include <cerrno>
#include <stdexcept>

#include "api/python/bindings.h"
#include "api/python/recording/driver_answer.h"
#include "api/python/recording/record_arguments.h"
#include "capture/windows/api_options.h"
#include "capture/windows/win32/doctor.h"
#include "capture/windows/win32/recorder.h"

namespace ptkit::api::python {
namespace {

// One recording. All functions but run() may be called while it runs, from any thread.
class DriverRecorder final : public capture::win32::Listener {
 public:
  explicit DriverRecorder(capture::WindowsOptions options) : options_(std::move(options)) {}

  py::dict run() {
    if (ran_.exchange(true)) throw std::runtime_error("this recorder has run; make a new one");
    auto outcome = [&] {
      const py::gil_scoped_release release;
      return capture::win32::record(options_, requests_, *this, capture::win32::ProgramEnd::AWAITED);
    }();
    return to_dict(value_or_raise(std::move(outcome)).result);
  }
  void request_stop() { requests_.stop(); }
  void request_detach() { requests_.detach(); }
  void snapshot() { requests_.snapshot(); }
  void pause() { requests_.set_paused(true); }
  void resume() { requests_.set_paused(false); }
  [[nodiscard]] py::tuple progress_now() const { return py::make_tuple(0, trace_bytes_.load()); }
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] bool started() const { return started_; }

  void began(int pid) override {
    pid_ = pid;
    started_ = true;
  }
  void progress(std::uint64_t trace_bytes) override { trace_bytes_ = trace_bytes; }

 private:
  capture::WindowsOptions options_;
  capture::win32::Requests requests_;
  std::atomic<bool> ran_{false};
  std::atomic<bool> started_{false};
  std::atomic<int> pid_{0};
  std::atomic<std::uint64_t> trace_bytes_{0};
};

std::unique_ptr<DriverRecorder> make(const py::kwargs& given) {
  return std::make_unique<DriverRecorder>(value_or_raise(capture::windows_options(options_of(given))));
}

// What driver, processor and Windows can do, or why nothing can be recorded.
py::dict ask() {
  const capture::win32::Findings found = capture::win32::examine();
  py::dict out =
      driver_answer(found.problem.empty() ? 0 : ENODEV, found.query ? found.query->query : ptkit_query{});
  out["detail"] = found.problem;
  out["lines"] = found.lines;
  return out;
}

}  // namespace

void register_windows(py::module_& module) {
  module.def("ask_driver", &ask,
             "What the kernel driver says: errno (0: it can record), detail (why it cannot, and what to do), "
             "lines (all in words), abi, known_abi, version, features, mtc, cyc, ranges.");
  py::class_<DriverRecorder>(module, "DriverRecorder", "Has the processor trace, and writes a bundle.")
      .def(py::init(&make))
      .def("run", &DriverRecorder::run,
           "Blocks until the recording has ended; gives what came of it. Once only.")
      .def("request_stop", &DriverRecorder::request_stop,
           "Ends it: Ctrl-Break for a program that it started.")
      .def("request_detach", &DriverRecorder::request_detach, "Ends it; what is recorded runs on.")
      .def("snapshot", &DriverRecorder::snapshot, "Keeps what is in the rings.")
      .def("pause", &DriverRecorder::pause, "Traces nothing until `resume`.")
      .def("resume", &DriverRecorder::resume, "Goes on after `pause`.")
      .def("progress", &DriverRecorder::progress_now,
           "0 (instructions are not counted) and bytes of trace made so far.")
      .def_property_readonly("pid", &DriverRecorder::pid, "The process; 0: none, or not started.")
      .def_property_readonly("started", &DriverRecorder::started, "Whether tracing is on.");
}

}  // namespace ptkit::api::python
