// Abilities of the kernel driver and of perf on this system.
#include "api/python/bindings.h"
#include "api/python/recording/driver_answer.h"
#include "capture/linux/driver/port.h"
#include "capture/linux/perf/branches.h"
#include "capture/linux/perf/config.h"

namespace ptkit::api::python {
namespace {

py::dict query_driver() {
  int error = 0;
  const auto port = capture::try_driver(error);
  ptkit_query query{};
  if (error == 0) error = port->request(PTKIT_QUERY, &query);
  return driver_answer(error, query);
}

py::dict query_perf(const std::string& records) {
  const auto port = capture::open_perf();
  const capture::PerfSupport support = records == "bts"            ? capture::bts_support(*port)
                                       : records == "branch_stack" ? capture::lbr_support(*port)
                                                                   : capture::pt_support(*port);
  py::dict out;
  out["missing"] = support.error.what;
  out["remedy"] = support.error.remedy;
  out["abilities"] = support.abilities;
  return out;
}

}  // namespace

void register_recorders(py::module_& module) {
  register_recorder(module);
  module.def(
      "query_driver", &query_driver,
      "The kernel driver's answer: errno (0: the others are present), abi, known_abi, version, features, "
      "mtc, cyc, ranges.");
  module.def(
      "query_perf", &query_perf, py::arg("records") = "packets",
      "Whether perf can record packets (intel_pt), \"bts\" or \"branch_stack\": missing and remedy (empty: "
      "it can), abilities.");
}

}  // namespace ptkit::api::python
