// The hardware recorders (driver, perf), and the features of kernel driver and perf.
#include "api/python/bindings.h"
#include "api/python/recording/driver_answer.h"
#include "api/python/recording/record_arguments.h"
#include "capture/linux/driver/port.h"
#include "capture/linux/driver/recorder.h"
#include "capture/linux/perf/branches.h"
#include "capture/linux/perf/recorder.h"

namespace ptkit::api::python {
namespace {

using capture::DriverRecorder;
using capture::HardwareRecorder;
using capture::PerfRecorder;

py::dict run_units(HardwareRecorder& recorder) {
  auto result = [&] {
    const py::gil_scoped_release release;
    return recorder.run();
  }();
  return to_dict(value_or_raise(std::move(result)));
}

template <typename Recorder>
std::unique_ptr<Recorder> make(const py::kwargs& given) {
  return std::make_unique<Recorder>(options_of(given));
}

py::dict ask() {
  int error = 0;
  const auto port = capture::try_driver(error);
  ptkit_query query{};
  if (error == 0) error = port->request(PTKIT_QUERY, &query);
  return driver_answer(error, query);
}

py::dict ask_perf(const std::string& what) {
  const auto port = capture::open_perf();
  const capture::PerfSupport support = what == "bts"            ? capture::bts_support(*port)
                                       : what == "branch_stack" ? capture::lbr_support(*port)
                                                                : capture::pt_support(*port);
  py::dict out;
  out["missing"] = support.error.what;
  out["remedy"] = support.error.remedy;
  out["abilities"] = support.abilities;
  return out;
}

}  // namespace

void register_hardware(py::module_& module) {
  module.def("ask_driver", &ask,
             "What the kernel driver says: errno (0: the rest is there), abi, known_abi, version, features, "
             "mtc, cyc, ranges.");
  module.def("ask_perf", &ask_perf, py::arg("what") = "packets",
             "Whether perf's intel_pt (or what records \"bts\" or \"branch_stack\") can be used: missing and "
             "remedy (empty: it can), abilities.");
  py::class_<HardwareRecorder>(module, "HardwareRecorder", "Has the processor trace, and writes a bundle.")
      .def("run", &run_units, "Blocks until the recording has ended; gives what came of it. Once only.")
      .def("request_stop", &HardwareRecorder::request_stop, "Ends it: SIGINT for a program that it started.")
      .def("request_detach", &HardwareRecorder::request_detach, "Ends it; what is recorded runs on.")
      .def("snapshot", &HardwareRecorder::request_snapshot, "Keeps what is in the rings.")
      .def("pause", &HardwareRecorder::pause, "Traces nothing until `resume`.")
      .def("resume", &HardwareRecorder::resume, "Goes on after `pause`.")
      .def(
          "progress",
          [](const HardwareRecorder& recorder) {
            const capture::RecordProgress progress = recorder.progress();
            return py::make_tuple(progress.instructions, progress.trace_bytes);
          },
          "0 (instructions are not counted) and bytes of trace made so far.")
      .def_property_readonly("pid", &HardwareRecorder::pid, "The process; 0: none, or not started.")
      .def_property_readonly("started", &HardwareRecorder::started, "Whether tracing is on.");
  py::class_<DriverRecorder, HardwareRecorder>(module, "DriverRecorder", "By ptkit's kernel driver.")
      .def(py::init(&make<DriverRecorder>));
  py::class_<PerfRecorder, HardwareRecorder>(module, "PerfRecorder", "By Linux perf.")
      .def(py::init(&make<PerfRecorder>));
}

}  // namespace ptkit::api::python
