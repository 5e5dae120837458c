// The emulator recorder.
#include "api/python/bindings.h"
#include "api/python/recording/record_arguments.h"
#include "capture/linux/emulator/emulator.h"

namespace ptkit::api::python {
namespace {

using capture::EmulatorRecorder;

py::dict run_emulator(EmulatorRecorder& recorder) {
  auto result = [&] {
    const py::gil_scoped_release release;
    return recorder.run();
  }();
  return to_dict(value_or_raise(std::move(result)));
}

std::unique_ptr<EmulatorRecorder> make(const py::kwargs& given) {
  return std::make_unique<EmulatorRecorder>(options_of(given));
}

}  // namespace

void register_emulator(py::module_& module) {
  py::class_<EmulatorRecorder>(module, "EmulatorRecorder",
                               "Runs a program in QEMU's user mode emulation and writes a bundle.")
      .def(py::init(&make))
      .def("run", &run_emulator, "Blocks until the recording has ended; gives what came of it. Once only.")
      .def("request_stop", &EmulatorRecorder::request_stop, "Ends it: SIGINT for the program.")
      .def("request_detach", &EmulatorRecorder::request_detach, "Ends it; the program runs on.")
      .def("snapshot", &EmulatorRecorder::request_snapshot, "Keeps what is in the ring.")
      .def("pause", &EmulatorRecorder::pause, "Records nothing until `resume`.")
      .def("resume", &EmulatorRecorder::resume, "Goes on after `pause`.")
      .def(
          "progress",
          [](const EmulatorRecorder& recorder) {
            const capture::RecordProgress progress = recorder.progress();
            return py::make_tuple(progress.instructions, progress.trace_bytes);
          },
          "Instructions executed and bytes of trace made so far.")
      .def_property_readonly("pid", &EmulatorRecorder::pid, "The program's process; 0: not started.");
}

}  // namespace ptkit::api::python
