// The recorder that has the processor trace, and what the kernel driver says of itself.
#include <array>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/record_tuples.h"
#include "capture/driver_config.h"
#include "capture/driver_port.h"
#include "capture/driver_recorder.h"

namespace ptkit::bindings {
namespace {

using capture::DriverRecorder;
using capture::RecordOptions;

py::dict run(DriverRecorder& recorder) {
  auto result = [&] {
    const py::gil_scoped_release release;
    return recorder.run();
  }();
  return to_dict(value_or_raise(std::move(result)));
}

// The keyword arguments are the members of the options.
std::unique_ptr<DriverRecorder> make(const py::kwargs& given) {
  RecordOptions options;
  capture::HardwareOptions& hardware = options.hardware;
  std::size_t taken = 0;
  const auto take = [&](const char* name, auto& out) {
    if (!given.contains(name)) return;
    out = py::cast<std::decay_t<decltype(out)>>(given[name]);
    ++taken;
  };
  std::vector<FilterTuple> filters;
  std::vector<TriggerTuple> triggers;
  take("argv", options.argv);
  take("output", options.output);
  take("truth", options.truth_folder);
  take("return_compression", options.return_compression);
  take("tsc", options.tsc);
  take("mtc", options.mtc);
  take("cyc", options.cyc);
  take("tnt_64", options.tnt_64);
  take("psb_period", options.psb_period);
  take("mtc_period", options.mtc_period);
  take("cyc_threshold", options.cyc_threshold);
  take("max_instructions", options.max_instructions);
  take("quiet", options.quiet);
  take("redact", options.redact);
  take("ring_bytes", options.ring_bytes);
  take("filters", filters);
  take("triggers", triggers);
  take("user", hardware.user);
  take("kernel", hardware.kernel);
  take("ptwrite", hardware.ptwrite);
  take("power", hardware.power);
  take("events", hardware.events);
  take("single_range", hardware.single_range);
  take("children", hardware.children);
  take("process", hardware.pid);
  take("all_cpus", hardware.all_cpus);
  take("cpus", hardware.cpus);
  take("buffer_bytes", hardware.buffer_bytes);
  take("limit_ms", hardware.limit_ms);
  if (taken != given.size()) throw py::type_error("DriverRecorder: there is no such option");
  for (const FilterTuple& filter : filters) options.filters.push_back(filter_of(filter));
  for (const TriggerTuple& trigger : triggers) options.triggers.push_back(trigger_of(trigger));
  return std::make_unique<DriverRecorder>(std::move(options));
}

// What the driver can do here, by name.
py::list names_of(std::uint64_t features) {
  constexpr std::array<std::pair<std::uint64_t, const char*>, 10> kNames{{
      {PTKIT_FEATURE_TOPA, "topa"},
      {PTKIT_FEATURE_SINGLE_RANGE, "single_range"},
      {PTKIT_FEATURE_PROCESS, "process"},
      {PTKIT_FEATURE_PROCESS_BOTH, "process_both"},
      {PTKIT_FEATURE_TASK, "task"},
      {PTKIT_FEATURE_WAKE_UP, "wake_up"},
      {PTKIT_FEATURE_SIDEBAND, "sideband"},
      {PTKIT_FEATURE_CHILDREN, "children"},
      {PTKIT_FEATURE_BTS, "bts"},
      {PTKIT_FEATURE_VMX, "vmx"},
  }};
  py::list out;
  for (const auto& [bit, name] : kNames) {
    if ((features & bit) != 0) out.append(name);
  }
  return out;
}

py::dict ask() {
  py::dict out;
  int error = 0;
  const auto port = capture::try_driver(error);
  ptkit_query query{};
  if (error == 0) error = port->request(PTKIT_QUERY, &query);
  out["errno"] = error;
  out["abi"] = query.abi;
  out["known_abi"] = PTKIT_ABI;
  out["version"] = py::make_tuple(query.driver_version >> 16, query.driver_version >> 8 & 0xff,
                                  query.driver_version & 0xff);
  out["features"] = names_of(query.features);
  const rtit::Capabilities can = capture::capabilities_of(query);
  out["mtc"] = can.mtc();
  out["cyc"] = can.psb_cyc();
  out["ranges"] = can.ranges();
  return out;
}

}  // namespace

void register_driver(py::module_& module) {
  module.def("ask_driver", &ask,
             "What the kernel driver says: errno (0: the rest is there), abi, known_abi, version, features, "
             "mtc, cyc, "
             "ranges.");
  py::class_<DriverRecorder>(module, "DriverRecorder",
                             "Has the processor trace, by ptkit's kernel driver, and writes a bundle.")
      .def(py::init(&make))
      .def("run", &run, "Blocks until the recording has ended; gives what came of it. Once only.")
      .def("request_stop", &DriverRecorder::request_stop, "Ends it: SIGINT for a program that it started.")
      .def("request_detach", &DriverRecorder::request_detach, "Ends it; what is recorded runs on.")
      .def("snapshot", &DriverRecorder::request_snapshot, "Keeps what is in the rings.")
      .def("pause", &DriverRecorder::pause, "Traces nothing until `resume`.")
      .def("resume", &DriverRecorder::resume, "Goes on after `pause`.")
      .def(
          "progress",
          [](const DriverRecorder& recorder) {
            const capture::RecordProgress progress = recorder.progress();
            return py::make_tuple(progress.instructions, progress.trace_bytes);
          },
          "0 (instructions are not counted) and bytes of trace made so far.")
      .def_property_readonly("pid", &DriverRecorder::pid, "The process; 0: none, or not started.")
      .def_property_readonly("started", &DriverRecorder::started, "Whether tracing is on.");
}

}  // namespace ptkit::bindings
