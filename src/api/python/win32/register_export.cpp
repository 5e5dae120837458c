// Exports recordings to other formats.
#include "api/python/bindings.h"

namespace ptkit::api::python {
namespace {

py::dict write_perf_data(const BundleHandle& /*handle*/, const std::string& path,
                         const std::string& /*code*/) {
  raise_failure(
      {base::Status::UNSUPPORTED, 0,
       path + ": perf.data files are not written on Windows; save a bundle and export it on Linux"});
}

}  // namespace

void register_export(py::module_& module) {
  module.def("write_perf_data", &write_perf_data, py::arg("bundle"), py::arg("path"), py::kw_only(),
             py::arg("code") = "needed", "Raises UnsupportedError.");
}

}  // namespace ptkit::api::python
