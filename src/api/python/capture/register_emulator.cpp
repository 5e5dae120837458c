// The emulator recorder.
#include "api/python/bindings.h"
#include "api/python/recording/record_arguments.h"
#include "api/python/recording/record_tuples.h"
#include "capture/linux/emulator/emulator.h"

namespace ptkit::api::python {
namespace {

using capture::EmulatorRecorder;
using capture::RecordOptions;

py::dict run_emulator(EmulatorRecorder& recorder) {
  auto result = [&] {
    const py::gil_scoped_release release;
    return recorder.run();
  }();
  return to_dict(value_or_raise(std::move(result)));
}

std::unique_ptr<EmulatorRecorder> make(std::vector<std::string> argv, std::string output, std::string qemu,
                                       std::string plugin, std::string truth, std::string transfers,
                                       bool return_compression, bool tsc, bool mtc, bool cyc, bool tnt_64,
                                       std::uint32_t psb_period, std::uint8_t mtc_period,
                                       std::uint8_t cyc_threshold, std::uint64_t max_instructions, bool quiet,
                                       bool redact, bool debug, const std::optional<OwnerTuple>& owner,
                                       std::uint64_t ring_bytes, const std::vector<FilterTuple>& filters,
                                       const std::vector<TriggerTuple>& triggers) {
  RecordOptions options;
  options.argv = std::move(argv);
  options.output = std::move(output);
  options.qemu = std::move(qemu);
  options.plugin = std::move(plugin);
  options.truth_folder = std::move(truth);
  options.transfers_folder = std::move(transfers);
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
  options.ring_bytes = ring_bytes;
  for (const FilterTuple& filter : filters) options.filters.push_back(filter_of(filter));
  for (const TriggerTuple& trigger : triggers) options.triggers.push_back(trigger_of(trigger));
  return std::make_unique<EmulatorRecorder>(std::move(options));
}

}  // namespace

void register_emulator(py::module_& module) {
  py::class_<EmulatorRecorder>(module, "EmulatorRecorder",
                               "Runs a program in QEMU's user mode emulation and writes a bundle.")
      .def(py::init(&make), py::kw_only(), py::arg("argv"), py::arg("output"), py::arg("qemu"),
           py::arg("plugin"), py::arg("truth") = "", py::arg("transfers") = "",
           py::arg("return_compression") = true, py::arg("tsc") = true, py::arg("mtc") = true,
           py::arg("cyc") = false, py::arg("tnt_64") = false, py::arg("psb_period") = 4096,
           py::arg("mtc_period") = 8, py::arg("cyc_threshold") = 0, py::arg("max_instructions") = 0,
           py::arg("quiet") = false, py::arg("redact") = false, py::arg("debug") = false,
           py::arg("owner") = py::none(), py::arg("ring_bytes") = 0,
           py::arg("filters") = std::vector<FilterTuple>(), py::arg("triggers") = std::vector<TriggerTuple>())
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
