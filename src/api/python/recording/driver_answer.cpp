#include "api/python/recording/driver_answer.h"

#include <array>
#include <utility>

#include "capture/device/config.h"

namespace ptkit::api::python {
namespace {

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

}  // namespace

py::dict driver_answer(int error, const ptkit_query& query) {
  py::dict out;
  out["errno"] = error;
  out["abi"] = query.abi;
  out["known_abi"] = PTKIT_ABI;
  out["version"] = py::make_tuple(query.driver_version >> 16, query.driver_version >> 8 & 0xff,
                                  query.driver_version & 0xff);
  out["features"] = names_of(query.features);
  const trace_unit::msr::Capabilities can = capture::capabilities_of(query);
  out["mtc"] = can.mtc();
  out["cyc"] = can.psb_cyc();
  out["ranges"] = can.ranges();
  return out;
}

}  // namespace ptkit::api::python
