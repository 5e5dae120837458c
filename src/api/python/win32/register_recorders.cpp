// Abilities of the Windows driver on this system.
#include <cerrno>

#include "api/python/bindings.h"
#include "api/python/recording/driver_answer.h"
#include "capture/windows/win32/doctor.h"

namespace ptkit::api::python {
namespace {

// The abilities of driver, processor and Windows, or why nothing can be recorded.
py::dict query_driver() {
  const capture::win32::Findings found = capture::win32::examine();
  py::dict out =
      driver_answer(found.problem.empty() ? 0 : ENODEV, found.query ? found.query->query : ptkit_query{});
  out["detail"] = found.problem;
  out["lines"] = found.lines;
  return out;
}

}  // namespace

void register_recorders(py::module_& module) {
  register_recorder(module);
  module.def("query_driver", &query_driver,
             "The kernel driver's answer: errno (0: it can record), detail (why it cannot, and the remedy), "
             "lines (all as text), abi, known_abi, version, features, mtc, cyc, ranges.");
}

}  // namespace ptkit::api::python
