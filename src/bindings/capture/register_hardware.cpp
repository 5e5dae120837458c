// The hardware recorders (driver, perf), and the features of kernel driver and perf.
#include <array>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/capture/record_tuples.h"
#include "capture/driver/config.h"
#include "capture/driver/port.h"
#include "capture/driver/recorder.h"
#include "capture/perf/branches.h"
#include "capture/perf/recorder.h"

namespace ptkit::bindings {
namespace {

using capture::DriverRecorder;
using capture::HardwareRecorder;
using capture::PerfRecorder;
using capture::RecordOptions;

py::dict run_units(HardwareRecorder& recorder) {
  auto result = [&] {
    const py::gil_scoped_release release;
    return recorder.run();
  }();
  return to_dict(value_or_raise(std::move(result)));
}

// Keyword arguments have the names of the options' members.
template <typename Recorder>
std::unique_ptr<Recorder> make(const py::kwargs& given) {
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
  take("usual_timing", hardware.usual_timing);
  take("usual_mtc_period", hardware.usual_mtc_period);
  take("cyc_threshold", options.cyc_threshold);
  take("max_instructions", options.max_instructions);
  take("quiet", options.quiet);
  take("redact", options.redact);
  take("debug", options.debug);
  std::optional<OwnerTuple> owner;
  take("owner", owner);
  if (owner) options.owner = owner_of(*owner);
  take("ring_bytes", options.ring_bytes);
  take("filters", filters);
  take("triggers", triggers);
  take("user", hardware.user);
  take("kernel", hardware.kernel);
  take("ptwrite", hardware.ptwrite);
  take("power", hardware.power);
  take("events", hardware.events);
  take("single_range", hardware.single_range);
  take("per_thread", hardware.per_thread);
  take("event", hardware.event);
  take("children", hardware.children);
  take("process", hardware.pid);
  take("all_cpus", hardware.all_cpus);
  take("cpus", hardware.cpus);
  take("buffer_bytes", hardware.buffer_bytes);
  take("limit_ms", hardware.limit_ms);
  bool bts = false;
  std::string stack;
  take("bts", bts);
  take("branch_stack", stack);
  take("sample_period", hardware.sample_period);
  take("sample_frequency", hardware.sample_frequency);
  if (bts) hardware.recorded = capture::Recorded::BTS;
  if (!stack.empty()) {
    hardware.recorded = capture::Recorded::LBR;
    hardware.stack_kinds = std::move(stack);
  }
  if (taken != given.size()) throw py::type_error("recorder: there is no such option");
  for (const FilterTuple& filter : filters) options.filters.push_back(filter_of(filter));
  for (const TriggerTuple& trigger : triggers) options.triggers.push_back(trigger_of(trigger));
  return std::make_unique<Recorder>(std::move(options));
}

// Names of the driver's features.
py::list names_of(std::uint64_t features) {
  constexpr std::array<std::pair<std::uint64_t, const char*>, 11> kNames{{
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
      {PTKIT_FEATURE_RESERVES, "reserves"},
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
  const msr::Capabilities can = capture::capabilities_of(query);
  out["mtc"] = can.mtc();
  out["cyc"] = can.psb_cyc();
  out["ranges"] = can.ranges();
  return out;
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

}  // namespace ptkit::bindings
