#include "api/python/recording/record_arguments.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "api/python/recording/record_tuples.h"
#include "api/python/text.h"

namespace ptkit::api::python {

capture::RecordOptions options_of(const py::kwargs& given) {
  capture::RecordOptions options;
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
  take("qemu", options.qemu);
  take("plugin", options.plugin);
  take("truth", options.truth_folder);
  take("transfers", options.transfers_folder);
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
  return options;
}

py::dict to_dict(const capture::RecordResult& result) {
  py::dict out;
  out["exit_status"] = result.exit_status;
  out["instructions"] = result.instructions;
  out["branches"] = result.branches;
  out["streams"] = result.streams;
  out["trace_bytes"] = result.trace_bytes;
  out["bundle_bytes"] = result.bundle_bytes;
  out["dropped_bytes"] = result.dropped_bytes;
  out["snapshots"] = result.snapshots;
  out["interrupted"] = result.interrupted;
  out["limited"] = result.limited;
  out["unmatched"] = result.unmatched;
  out["warnings"] = python_warnings(result.warnings);
  return out;
}

}  // namespace ptkit::api::python
