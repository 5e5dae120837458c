// The recorder of all back ends, and the table of its options.
#include <atomic>
#include <stdexcept>

#include "api/python/bindings.h"
#include "api/python/recording/record_arguments.h"
#include "capture/common/recorder.h"

namespace ptkit::api::python {
namespace {

// All functions but run() may be called while it runs, from any thread.
class BoundRecorder {
 public:
  explicit BoundRecorder(const py::kwargs& given)
      : recorder_(value_or_raise(capture::make_recorder(options_of(given)))) {}

  py::dict run() {
    if (ran_.exchange(true)) throw std::runtime_error("this recorder has run; make a new one");
    auto result = [&] {
      const py::gil_scoped_release release;
      return recorder_->run();
    }();
    return to_dict(value_or_raise(std::move(result)));
  }
  void stop() { recorder_->stop(); }
  template <capture::Recorder::Problem (capture::Recorder::*kRequest)()>
  void request() {
    if (const auto failure = (recorder_.get()->*kRequest)()) raise_failure(*failure);
  }
  [[nodiscard]] py::tuple status() const {
    const capture::RecordStatus now = recorder_->status();
    return py::make_tuple(now.pid, now.started, now.instructions, now.trace_bytes);
  }

 private:
  std::unique_ptr<capture::Recorder> recorder_;
  std::atomic<bool> ran_{false};
};

}  // namespace

void register_recorder(py::module_& module) {
  using capture::Recorder;
  module.def("record_options", &record_options,
             "The options of recordings: a dictionary for each, with the columns of record_options.def.");
  module.def("default_timing", &default_timing, py::arg("backend"),
             "Timing packets and MTC period that a back end uses if they are not given.");
  py::class_<BoundRecorder>(module, "Recorder", "Records with the back end `backend`, and writes a bundle.")
      .def(py::init<const py::kwargs&>())
      .def("run", &BoundRecorder::run, "Blocks until the recording has ended; returns its result. Once only.")
      .def("stop", &BoundRecorder::stop, "Ends the recording: a program that it started is interrupted.")
      .def("detach", &BoundRecorder::request<&Recorder::detach>, "Ends the recording; the process runs on.")
      .def("snapshot", &BoundRecorder::request<&Recorder::snapshot>, "Writes the rings to the bundle.")
      .def("pause", &BoundRecorder::request<&Recorder::pause>, "Records nothing until `resume`.")
      .def("resume", &BoundRecorder::request<&Recorder::resume>, "Continues after `pause`.")
      .def("status", &BoundRecorder::status,
           "pid (0: none, or not started), whether recording has started, instructions and bytes of trace so "
           "far (0: not known).");
}

}  // namespace ptkit::api::python
